# frozen_string_literal: true

require_relative "rows"

module Headway
  module Report
    # A report in sentences and tables: what the terminal's summary and the Markdown share.
    class Listing
      # @param document [Document]
      def initialize(document)
        @data = document.to_h
        @totals = @data[:totals]
        @rows = Rows.new(document)
      end

      private

      def settings(process)
        "policy #{process[:policy]}, quantum #{process[:quantum_ms] && format("%g", process[:quantum_ms])} ms, preempt #{process[:preempt]}"
      end

      def time(seconds) = Summary::Text.duration(seconds)

      def percent(fraction) = Summary::Text.percent(fraction)
    end
  end
end
