# frozen_string_literal: true

require_relative "guard"
require_relative "../own_thread"
require_relative "../stats"

module Headway
  module Integrations
    # Says every so often, in a server's own log, what the GVL cost meanwhile.
    class Log
      # @param interval [Numeric] seconds
      # @yieldparam line [String]
      def initialize(interval, &write)
        @interval = interval
        @write = write
      end

      # Starts it in this process, once.
      # @return [void]
      def start
        return if @thread&.alive?

        @thread = OwnThread.start { run }
        @thread.name = "headway log"
        @thread.report_on_exception = false
      end

      # @return [void]
      def stop
        @thread&.kill
        @thread = nil
      end

      private

      def run
        before = sight
        loop do
          sleep @interval
          Guard.guard("the log") { before = say(before, sight) }
        end
      end

      def sight
        return unless Headway.started?

        { at: Process.clock_gettime(Process::CLOCK_MONOTONIC), process: Stats.process }
      end

      def say(before, after)
        if before && after && after[:process][:running] >= before[:process][:running]
          @write.call(line(after[:at] - before[:at], *[before, after].map { |sight| sight[:process] }))
        end
        after
      end

      def line(seconds, before, after)
        running, ready = %i[running ready].map { |state| after[state] - before[state] }
        waits = after[:wait][:count] - before[:wait][:count]
        format("headway: %<seconds>s s: GVL held %<held>.0f %% of it, %<waits>d waits of %<wait>.2f ms on average, %<preemptions>d preemptions",
               seconds: whole_or_brief(seconds), held: 100 * running / seconds, waits: waits, wait: waits.zero? ? 0 : 1000 * ready / waits,
               preemptions: after[:switches][:preempted] - before[:switches][:preempted])
      end

      # In whole seconds one of half a second would be said to have taken none, or one.
      def whole_or_brief(seconds)
        format(seconds < 9.95 ? "%.2g" : "%.0f", seconds)
      end
    end
  end
end
