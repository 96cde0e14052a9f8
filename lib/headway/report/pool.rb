# frozen_string_literal: true

module Headway
  module Report
    # What no thread of a trace tells of: requests and jobs that wait for a thread, in a server's queue. How long, some say themselves.
    class Pool
      # Of the time in which there was work, all threads were at it: from here on what comes waits more often than not.
      MOSTLY = 0.5
      # In less time, or with less work for each thread, it may be chance.
      FROM_S = 1
      EACH_AT_LEAST = 10
      # A queue that takes so much of what the work itself does, and no less than that, is worth a sentence of its own.
      TELLING = 0.25
      TELLING_S = 0.01
      private_constant :MOSTLY, :FROM_S, :EACH_AT_LEAST, :TELLING, :TELLING_S

      # @param processes [Array<Hash>] of the trace
      # @param remedy [Remedy]
      def initialize(processes, remedy)
        @workers = processes.filter_map { |process| process[:pool] }
        @pools = @workers.select { |pool| pool[:threads] > 1 }
        @queued = processes.filter_map { |process| process[:queued] }
        @remedy = remedy
      end

      # @param more [Boolean] whether more threads may do more
      # @return [String, nil]
      def sentence(more)
        return full if more && full?

        "Before a thread took it, work stood in a queue for #{how_long}." if queue?
      end

      private

      def full?
        @work_s, @full_s, threads, count = %i[work_s full_s threads count].map { |key| @pools.sum { |pool| pool[key] } }
        @work_s >= FROM_S && @full_s >= MOSTLY * @work_s && count >= EACH_AT_LEAST * threads
      end

      def full
        "For #{Summary::Text.percent(@full_s / @work_s)} of the time in which there was work #{all} were at it: what else came waited for " \
          "one of them, or for one more to be started, #{@queued.any? ? how_long : "which no trace shows"}. #{asking} says whether more " \
          "threads help."
      end

      def queue?
        count, total_s = %i[count total_s].map { |key| @workers.sum { |pool| pool[key] } }
        @queued.any? && mean_s >= TELLING_S && mean_s * count >= TELLING * total_s
      end

      def mean_s = @queued.sum { |queued| queued[:total_s] } / @queued.sum { |queued| queued[:count] }

      def how_long
        mean, most = [mean_s, @queued.map { |queued| queued[:max_s] }.max].map { |seconds| Summary::Text.duration(seconds) }
        "#{mean} on average and #{most} at the most"
      end

      def asking = @remedy.asking.sub(/\A./, &:upcase)

      def all
        least, most = @pools.map { |pool| pool[:threads] }.minmax
        "all #{[least, most].uniq.join(" to ")} threads#{" of a process" if @pools.size > 1}"
      end
    end
    private_constant :Pool
  end
end
