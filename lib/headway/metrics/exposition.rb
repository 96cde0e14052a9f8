# frozen_string_literal: true

module Headway
  module Metrics
    # Families in Prometheus's text format, version 0.0.4.
    module Exposition
      CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
      VALUE_ESCAPES = { "\\" => "\\\\", "\"" => "\\\"", "\n" => "\\n" }.freeze
      HELP_ESCAPES = VALUE_ESCAPES.except("\"").freeze
      NAME = /\A[a-zA-Z_:][a-zA-Z0-9_:]*\z/.freeze
      LABEL = /\A[a-zA-Z_][a-zA-Z0-9_]*\z/.freeze
      private_constant :VALUE_ESCAPES, :HELP_ESCAPES, :NAME, :LABEL

      class << self
        # @param families [Array<Family>]
        # @return [String] without those whose names Prometheus can't read, as for one of them it would take nothing of all; they are
        #   named in {Headway.notices}
        def text(families)
          families.select { |family| legible?(family) }.map { |family| family_text(family) }.join
        end

        private

        def legible?(family)
          labels = family.series.each_key.flat_map(&:keys).uniq
          odd = NAME.match?(family.name) ? labels.find { |label| !LABEL.match?(label) } : family.name
          Notices.add("the metrics #{family.name} are left out: #{odd.to_s.inspect} is no name for Prometheus") if odd
          odd.nil?
        end

        def family_text(family)
          lines = family.series.flat_map do |labels, value|
            value.is_a?(Distribution) ? distribution(family.name, labels, value) : [line(family.name, labels, value)]
          end
          "# HELP #{family.name} #{family.help.gsub(/[\\\n]/, HELP_ESCAPES)}\n# TYPE #{family.name} #{family.type}\n#{lines.join}"
        end

        def distribution(name, labels, value)
          buckets = value.bounds.zip(value.counts).map { |bound, count| line("#{name}_bucket", { **labels, le: bound }, count) }
          [*buckets, line("#{name}_bucket", { **labels, le: "+Inf" }, value.count),
           line("#{name}_sum", labels, value.sum), line("#{name}_count", labels, value.count)]
        end

        def line(name, labels, value)
          pairs = labels.map { |label, text| "#{label}=\"#{text.to_s.gsub(/[\\"\n]/, VALUE_ESCAPES)}\"" }
          "#{name}#{"{#{pairs.join(",")}}" unless pairs.empty?} #{value}\n"
        end
      end
    end
  end
end
