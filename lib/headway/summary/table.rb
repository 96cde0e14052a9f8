# frozen_string_literal: true

module Headway
  class Summary
    # The threads of a process, a line each.
    class Table
      GROUPS = ["", "", "", "", "wait", "", "", "", "hold", "", "", ""].freeze
      HEADINGS = ["thread", "running", "ready", "suspended", "count", "p50", "p99", "max",
                  "count", "p50", "p99", "max"].freeze
      private_constant :GROUPS, :HEADINGS

      # @param threads [Array<Hash>] rows of {Headway.stats}, or of a report, which has a label for each
      def initialize(threads)
        @rows = [GROUPS, HEADINGS, *threads.map { |thread| cells(thread) }]
      end

      # @return [Array<String>]
      def lines
        widths = @rows.transpose.map { |column| column.map { |text| TextWidth.of(text) }.max }
        @rows.map do |name, *figures|
          aligned = figures.each_with_index.map { |figure, index| figure.rjust(widths[index + 1]) }
          "  #{TextWidth.fit(name, widths.first)}  #{aligned.join("  ")}".rstrip
        end
      end

      private

      def cells(thread)
        [thread[:label] || Table.label(thread), *thread.values_at(:running, :ready, :suspended).map { |time| Text.duration(time) },
         *spread(thread[:wait]), *spread(thread[:hold])]
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
