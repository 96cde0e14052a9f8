# frozen_string_literal: true

module Headway
  module Report
    # What no thread of a trace tells of: requests and jobs that wait for a thread, in a server's queue.
    class Pool
      # Of the time in which there was work, all threads were at it: from here on what comes waits more often than not.
      MOSTLY = 0.5
      # In less time, or with less work for each thread, it may be chance.
      FROM_S = 1
      EACH_AT_LEAST = 10
      private_constant :MOSTLY, :FROM_S, :EACH_AT_LEAST

      class << self
        # @param processes [Array<Hash>] of the trace
        # @param work [Array<Hash>] rows of the trace's
        # @param remedy [Remedy]
        # @return [String, nil]
        def sentence(processes, work, remedy)
          pools = processes.filter_map { |process| process[:pool] }.select { |pool| pool[:threads] > 1 }
          work_s, full_s, threads = %i[work_s full_s threads].map { |key| pools.sum { |pool| pool[key] } }
          return if work_s < FROM_S || full_s < MOSTLY * work_s || work.sum { |kind| kind[:count] } < EACH_AT_LEAST * threads

          "For #{Summary::Text.percent(full_s / work_s)} of the time in which there was work #{all(pools)} were at it: what else came waited for " \
            "one of them, or for one more to be started, which no trace shows. #{asking(remedy)} says whether more threads help."
        end

        private

        def asking(remedy) = remedy.asking.sub(/\A./, &:upcase)

        def all(pools)
          least, most = pools.map { |pool| pool[:threads] }.minmax
          "all #{[least, most].uniq.join(" to ")} threads#{" of a process" if pools.size > 1}"
        end
      end
    end
    private_constant :Pool
  end
end
