# frozen_string_literal: true

require_relative "rows"

module Headway
  module Report
    # A report in sentences and tables: what the terminal's summary and the Markdown share.
    class Listing
      # As {Summary::Columns} takes them.
      WORK = [["", "work", 0], ["", "count", 4], ["", "took", 0], ["", "running", 3], ["", "ready", 0], ["", "suspended", 2],
              ["", "others waited", 1]].freeze
      private_constant :WORK

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

      def work_cells
        @rows.work.map do |kind|
          [kind[:name], kind[:count].to_s, *kind.values_at(:total, :running, :ready, :suspended, :blamed).map { |one| time(one) }]
        end
      end

      # Of a moment, milliseconds.
      def moment(seconds) = format("%.3f s", seconds)

      def time(seconds) = Summary::Text.duration(seconds)

      def percent(fraction) = Summary::Text.percent(fraction)
    end
  end
end
