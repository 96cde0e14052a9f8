# frozen_string_literal: true

module Headway
  module Report
    # What times are a share of. A server that nobody calls is idle, and so are its threads: of the whole time any wait would be
    # little. So shares are of the time in which somebody ran or was ready, where that is much less.
    class Busy
      SINCE_WORK = " since work began"

      # @param data [Hash] as {Trace#to_h} returns it
      def initialize(data)
        @processes = data[:processes]
        @since_work = data[:totals][:since_work]
        @threads = data[:threads].group_by { |thread| thread[:process] }
        # Asked for each thread, of which there may be some ten thousand.
        @busy_s = Hash.new { |known, process| known[process] = busy_s_of(@threads.fetch(process, [])) }
      end

      # @param thread [Hash] a row of the trace's threads
      # @return [Array(Float, String)] seconds, and what they are
      def of_thread(thread)
        choose(thread.values_at(:running_s, :ready_s, :suspended_s).sum, @busy_s[thread[:process]], "its")
      end

      # @return [Array(Float, String)] of all processes; of those that did work, since it began: a server's boot is no load
      def of_all
        return choose(*@since_work.values_at(:wall_s, :running_s), "the", SINCE_WORK) if @since_work

        all_s = @processes.sum { |process| process[:end_s] - process[:start_s] }
        choose(all_s, @processes.sum { |process| @busy_s[process[:id]] }, "the")
      end

      private

      def choose(all_s, busy_s, whose, since = "")
        return [all_s, "#{whose} time#{since}"] if busy_s >= Summary::Verdict::BUSY * all_s

        [busy_s, "#{whose} #{Summary::Text.duration(busy_s)} under load#{since}"]
      end

      # Somebody ran, or waited while nobody did: of the latter, as much as the thread that had most of it. So none waited for longer.
      def busy_s_of(threads)
        free_s = threads.map { |thread| thread[:waited_for].sum { |part| part[:thread] || part[:others] ? 0.0 : part[:s] } }
        threads.sum { |thread| thread[:running_s] } + (free_s.max || 0.0)
      end
    end
  end
end
