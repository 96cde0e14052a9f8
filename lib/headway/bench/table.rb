# frozen_string_literal: true

module Headway
  module Bench
    # A result as a table of plain text: a line for each arm and group, medians with their range.
    class Table
      # One line: the arm, the group within it (a number of threads, a mode) or nil, and the figures by key.
      Row = Data.define(:arm, :group, :figures)

      class << self
        # @param result [Hash]
        # @return [Array<Row>] groups together, arms in their order within each
        def rows(result)
          rows = result["arms"].flat_map do |arm, figures|
            next [Row.new(arm:, group: nil, figures:)] if figures.values.first.key?("median")

            figures.map { |group, inner| Row.new(arm:, group:, figures: inner) }
          end
          rows.group_by(&:group).values.flatten
        end

        # @param lines [Array<Array<String>>] the first is the heading
        # @param left [Integer] how many columns are words
        # @return [String] columns lined up
        def layout(lines, left: 1)
          widths = lines.transpose.map { |column| column.map(&:size).max }
          lines.map do |line|
            line.each_with_index.map { |text, i| i < left ? text.ljust(widths[i]) : text.rjust(widths[i]) }.join("  ").rstrip
          end.join("\n")
        end
      end

      # @param result [Hash]
      # @param experiment [Experiment]
      def initialize(result, experiment)
        @result = result
        @experiment = experiment
      end

      # @return [String]
      def to_s
        rows = Table.rows(@result)
        groups = rows.any?(&:group)
        lines = [[*(@experiment.cell_title if groups), "arm", *@experiment.class.figures.map(&:key)]]
        rows.each { |row| lines << [*(row.group if groups), row.arm, *cells(row)] }
        [heading, Table.layout(lines, left: groups ? 2 : 1), *@experiment.findings(@result)].join("\n")
      end

      private

      def heading
        runs = @result["config"]["runs"]
        "#{@result["bench"]}: #{@experiment.class.purpose}\n" \
          "Ruby #{@result["ruby"]}, #{@result["cpus"]} CPUs; median#{" (lowest–highest)" if runs > 1} of #{runs}"
      end

      def cells(row)
        @experiment.class.figures.map do |figure|
          value = row.figures.fetch(figure.key)
          median, low, high = value.values_at("median", "min", "max").map { figure.format(_1) }
          value["n"] > 1 ? "#{median} (#{low}–#{high})" : median
        end
      end
    end
  end
end
