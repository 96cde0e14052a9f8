# frozen_string_literal: true

require "open3"

module Metrics
  # Prometheus's own judge of texts and rules.
  module Promtool
    # What is wrong with a text in the exposition format; nil: nothing.
    def promtool_complaints(*arguments, input: "")
      output, status = Open3.capture2e("promtool", *arguments, stdin_data: input)
      output unless status.success? && output.strip.empty?
    rescue Errno::ENOENT
      flunk "promtool is missing: install Prometheus (Debian: apt-get install prometheus)"
    end

    def assert_valid_metrics(text)
      assert_nil promtool_complaints("check", "metrics", input: text)
    end
  end
end
