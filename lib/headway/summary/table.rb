# frozen_string_literal: true

module Headway
  class Summary
    # The threads of a process, a line each.
    class Table
      # What is in a column, what group it is in, and how soon it goes where there is no room: the highest first, 0 never.
      COLUMNS = [["", "thread", 0], ["", "running", 0], ["", "ready", 0], ["", "suspended", 2],
                 %w[wait count] + [4], %w[wait p50] + [3], %w[wait p99] + [1], %w[wait max] + [0],
                 %w[hold count] + [8], %w[hold p50] + [7], %w[hold p99] + [6], %w[hold max] + [5]].freeze
      private_constant :COLUMNS

      # @param threads [Array<Hash>] rows of {Headway.stats}, or of a report, which has a label for each
      # @param room [Integer, nil] columns of the terminal; nil: as many as it takes
      def initialize(threads, room: nil)
        @threads = threads.map { |thread| cells(thread) }
        @room = room
      end

      # @return [Array<String>]
      def lines
        rows = [COLUMNS.map { |column| column[1] }, *@threads]
        kept = fitting(rows.transpose.map { |column| column.map { |text| TextWidth.of(text) }.max })
        [groups(kept.keys), *rows.map { |row| row.values_at(*kept.keys) }].map do |name, *figures|
          aligned = figures.zip(kept.values.drop(1)).map { |figure, width| figure.rjust(width) }
          "  #{TextWidth.fit(name, kept.values.first)}  #{aligned.join("  ")}".rstrip
        end
      end

      private

      def cells(thread)
        [thread[:label] || Table.label(thread), *thread.values_at(:running, :ready, :suspended).map { |time| Text.duration(time) },
         *spread(thread[:wait]), *spread(thread[:hold])]
      end

      # @return [Hash{Integer => Integer}] the columns to show, each with its width
      def fitting(widths)
        kept = widths.each_with_index.to_h { |width, index| [index, width] }
        going = kept.keys.reject { |index| COLUMNS[index].last.zero? }.sort_by { |index| -COLUMNS[index].last }
        kept.delete(going.shift) while @room && going.any? && kept.values.sum { |width| width + 2 } > @room
        kept
      end

      # Over the first column of each.
      def groups(shown)
        names = shown.map { |index| COLUMNS[index].first }
        names.each_with_index.map { |name, at| at.positive? && names[at - 1] == name ? "" : name }
      end

      def spread(figures)
        return ["0", "-", "-", "-"] if figures[:count].zero?

        [figures[:count].to_s, *figures.values_at(:p50, :p99, :max).map { |time| Text.duration(time) }]
      end

      # @return [String] a thread's name; threads that ended share a row with those of the same name
      def self.label(thread)
        name = Text.thread(thread[:name])
        thread[:count] > 1 ? "#{name} (#{thread[:count]} threads)" : name
      end
    end
  end
end
