# frozen_string_literal: true

require_relative "../summary"

module Headway
  module Report
    # What makes a trace's figures less than whole, a sentence each without the full stop, in the same words in every report.
    class Notes
      # Files can be called as long as that; what can't be printed in a line isn't.
      LONGEST_NAME = 255
      private_constant :LONGEST_NAME

      # @param data [Hash] as {Trace#to_h} returns it, its text readable
      # @return [Array<String>]
      def self.of(data) = new(data).to_a

      # @param data [Hash]
      def initialize(data)
        @data = data
      end

      # @return [Array<String>]
      def to_a
        [*@data[:processes].flat_map { |process| losses(process) }, counted(@data[:marks_folded], "%d marks are left out")].compact
      end

      private

      def losses(process)
        file = Summary::Text.name(process[:file], LONGEST_NAME) if @data[:processes].size > 1
        who = ["process #{process[:pid]}", *file].join(", ")
        [damaged(who, process),
         counted(process[:dropped], "#{who}: %d events were dropped while recording, so times around the gaps are guesses"),
         counted(process[:folded], "#{who}: %d blame samples were folded into other stacks to bound memory"),
         counted(process[:unread], "#{who}: %d events are left out, those of threads that were too many to be read")].compact
      end

      # A file that only lacks its end is as whole as one can be of a process that was killed, or that goes on.
      def damaged(who, process)
        damage = process[:damage] or return
        return "#{who}: #{endless(process)}" if Trace.endless?(damage[:what])

        "#{who}: the trace is damaged at byte #{damage[:offset]} (#{damage[:what]}); the report is made of what could be read"
      end

      def endless(process)
        ["its trace has no end: it was #{Trace::ENDLESS}; the report is made of what it had written",
         *("without its last block, of which only a part is there" unless process[:damage][:what].include?("no end block")),
         *("and code that it had no time to name is unknown" if unnamed?(process))].join(", ")
      end

      def unnamed?(process)
        @data[:blame][:stacks].any? { |stack| stack[:frames].empty? && @data[:threads][stack[:thread]][:process] == process[:id] }
      end

      def counted(number, sentence)
        format(sentence, number) if number.to_i.positive?
      end
    end
  end
end
