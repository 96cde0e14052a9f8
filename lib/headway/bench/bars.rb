# frozen_string_literal: true

module Headway
  module Bench
    # One figure drawn with characters, for the terminal.
    class Bars
      WIDTH = 40
      EIGHTHS = ["", *"▏▎▍▌▋▊▉".chars].freeze

      # @param figure [Figure]
      # @param result [Hash]
      # @param experiment [Experiment]
      def initialize(figure, result, experiment)
        @figure = figure
        @rows = Table.rows(result)
        @group_title = experiment.cell_title
      end

      # @return [String]
      def to_s
        lines = @rows.map { |row| [label(row), bar(value(row)), @figure.format(value(row))] }
        width = lines.map { _1.first.size }.max
        drawn = lines.map { |label, bar, number| "  #{label.ljust(width)}  #{bar} #{number}" }
        ["#{@figure.title} (#{better})", *drawn].join("\n")
      end

      private

      def better = { lower: "shorter is better", higher: "longer is better", neither: "no better or worse" }.fetch(@figure.better)

      def label(row) = [row.arm, *("#{@group_title} #{row.group}" if row.group)].join(", ")

      def value(row) = row.figures.fetch(@figure.key)["median"]

      def bar(number)
        longest = @rows.filter_map { value(_1) }.max
        return "" unless number&.positive?

        eighths = [(number / longest * WIDTH * 8).round, 1].max
        ("█" * (eighths / 8)) + EIGHTHS[eighths % 8]
      end
    end
  end
end
