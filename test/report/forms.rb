# frozen_string_literal: true

require "headway/report"
require "stringio"

# A trace in any form, for tests that look at several.
module ReportForms
  def report(form, trace)
    output = StringIO.new(String.new(encoding: form == :perfetto ? "BINARY" : "UTF-8"))
    Headway::Report.public_send(form, trace, output)
    output.string
  end

  def keys_of(value)
    case value
    when Hash then value.keys + value.values.flat_map { |one| keys_of(one) }
    when Array then value.flat_map { |one| keys_of(one) }
    else []
    end.uniq
  end
end
