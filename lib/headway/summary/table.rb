# frozen_string_literal: true

require_relative "columns"

module Headway
  class Summary
    # The threads of a process, a line each.
    class Table
      # What tells least goes first where there is no room.
      COLUMNS = [["", "thread", 0], ["", "running", 0], ["", "ready", 0], ["", "suspended", 2],
                 ["wait", "count", 4], ["wait", "p50", 3], ["wait", "p99", 1], ["wait", "max", 0],
                 ["hold", "count", 8], ["hold", "p50", 7], ["hold", "p99", 6], ["hold", "max", 5]].freeze
      private_constant :COLUMNS

      # @param threads [Array<Hash>] rows of {Headway.stats}, or of a report, which has a label for each
      # @param room [Integer, nil] (see Columns#initialize)
      def initialize(threads, room: nil)
        @columns = Columns.new(COLUMNS, threads.map { |thread| cells(thread) }, room: room)
      end

      # @return [Array<String>]
      def lines = @columns.lines

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
