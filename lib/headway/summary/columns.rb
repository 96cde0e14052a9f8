# frozen_string_literal: true

module Headway
  class Summary
    # A table for a terminal: a name a line and its figures, in as many columns as there is room for.
    class Columns
      # @param columns [Array<Array(String, String, Integer)>] of each: what group it is in, its title, and how soon it goes where there is
      #   no room: the highest first, 0 never
      # @param rows [Array<Array<String>>]
      # @param room [Integer, nil] columns of the terminal; nil: as many as it takes
      def initialize(columns, rows, room: nil)
        @columns = columns
        @rows = [columns.map { |_, title,| title }, *rows]
        @room = room
      end

      # @return [Array<String>]
      def lines
        kept = fitting
        [*groups(kept.keys), *@rows.map { |row| row.values_at(*kept.keys) }].map do |name, *figures|
          aligned = figures.zip(kept.values.drop(1)).map { |figure, width| figure.rjust(width) }
          "  #{TextWidth.fit(name, kept.values.first)}  #{aligned.join("  ")}".rstrip
        end
      end

      private

      # @return [Hash{Integer => Integer}] the columns to show, each with its width
      def fitting
        kept = @rows.transpose.each_with_index.to_h { |column, index| [index, column.map { |text| TextWidth.of(text) }.max] }
        going = kept.keys.reject { |index| @columns[index].last.zero? }.sort_by { |index| -@columns[index].last }
        kept.delete(going.shift) while @room && going.any? && kept.values.sum { |width| width + 2 } > @room
        kept
      end

      # A line with each over its first column.
      def groups(shown)
        names = shown.map { |index| @columns[index].first }
        line = names.each_with_index.map { |name, at| at.positive? && names[at - 1] == name ? "" : name }
        line.all?(&:empty?) ? [] : [line]
      end
    end
  end
end
