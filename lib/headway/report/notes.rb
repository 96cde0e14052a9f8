# frozen_string_literal: true

require_relative "../summary"

module Headway
  module Report
    # What makes a trace's figures less than whole, a sentence each without the full stop, in the same words in every report.
    class Notes
      # Files can be called as long as that; what can't be printed in a line isn't.
      LONGEST_NAME = 255
      # Of processes whose traces have no end, each with a sentence of its own.
      MOST_ENDLESS = 3
      # Threads that do a server's requests or jobs, and for how long they run where there are some to speak of.
      SERVER = /\A(?:puma \D*\d+\z|sidekiq.*processor)/.freeze
      SERVED_S = 0.05
      private_constant :LONGEST_NAME, :MOST_ENDLESS, :SERVER, :SERVED_S

      # @param data [Hash] as {Trace#to_h} returns it, its text readable
      # @return [Array<String>]
      def self.of(data) = new(data).to_a

      # @param data [Hash]
      def initialize(data)
        @data = data
      end

      # @return [Array<String>]
      def to_a
        [*(all_endless if together?), *@data[:processes].flat_map { |process| losses(process) },
         counted(@data[:marks_folded], "%d marks are left out"), unmarked].compact
      end

      private

      # A server's threads sleep as they wait for a request as they do for a lock in one.
      def unmarked
        served = @data[:threads].sum { |thread| SERVER.match?(thread[:name].to_s) ? thread[:running_s] : 0.0 }
        return if @data[:work].any? || served < SERVED_S

        "no requests or jobs are marked, without which nobody can tell what they waited for: `use Headway::Rack` first in config.ru, or " \
          "Headway::Sidekiq.install, marks them; in Rails gem \"headway\" is enough"
      end

      def endless_ones = @endless_ones ||= @data[:processes].select { |process| endless?(process) }

      def together? = endless_ones.size > MOST_ENDLESS

      def endless?(process) = Trace.endless?(process.dig(:damage, :what))

      # As of a forking server's workers that were killed.
      def all_endless
        pids = endless_ones.map { |process| process[:pid] }
        more = " and #{pids.size - MOST_ENDLESS} more"
        ["#{pids.size} processes (#{pids.first(MOST_ENDLESS).join(", ")}#{more}): their traces have no end: each was #{Trace::ENDLESS}; " \
         "the report is made of what they had written",
         *("some without their last block, of which only a part is there" if endless_ones.any? { |process| cut?(process) }),
         *("and code that some had no time to name is unknown" if endless_ones.any? { |process| unnamed?(process) })].join(", ")
      end

      def losses(process)
        file = Summary::Text.cut(process[:file], LONGEST_NAME) if @data[:processes].size > 1
        who = ["process #{process[:pid]}", *file].join(", ")
        [(damaged(who, process) unless together? && endless?(process)),
         counted(process[:dropped], "#{who}: %d events were dropped while recording, so times around the gaps are guesses"),
         counted(process[:folded], "#{who}: %d blame samples were folded into other stacks to bound memory"),
         counted(process[:unread], "#{who}: %d events are left out, those of threads that were too many to be read")].compact
      end

      # A file that only lacks its end is as whole as one can be of a process that was killed, or that goes on.
      def damaged(who, process)
        damage = process[:damage] or return
        return "#{who}: #{endless(process)}" if endless?(process)

        "#{who}: the trace is damaged at byte #{damage[:offset]} (#{damage[:what]}); the report is made of what could be read"
      end

      def endless(process)
        ["its trace has no end: it was #{Trace::ENDLESS}; the report is made of what it had written",
         *("without its last block, of which only a part is there" if cut?(process)),
         *("and code that it had no time to name is unknown" if unnamed?(process))].join(", ")
      end

      def cut?(process) = !process[:damage][:what].include?("no end block")

      def unnamed?(process)
        @data[:blame][:stacks].any? { |stack| stack[:frames].empty? && @data[:threads][stack[:thread]][:process] == process[:id] }
      end

      def counted(number, sentence)
        format(sentence, number) if number.to_i.positive?
      end
    end
  end
end
