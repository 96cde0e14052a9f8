# frozen_string_literal: true

module Headway
  class OffloadPool
    # What it costs here to hand work to another thread and to be woken when it is done.
    module HandOver
      ROUNDS = 50
      TYPICAL_NS = 15_000
      @lock = Mutex.new

      class << self
        # @return [Integer] nanoseconds, the least of several; measured once for each process, in about a millisecond
        def ns
          @ns || Fiber.blocking { @lock.synchronize { @ns ||= measure } }
        rescue ThreadError # a signal handler can neither lock nor wait
          TYPICAL_NS
        end

        private

        def measure
          there = Thread::Queue.new
          back = Thread::Queue.new
          thread = Thread.new { back << true while there.pop }
          Array.new(ROUNDS) { round_trip_ns(there, back) }.min
        ensure
          there.close
          thread&.join
        end

        def round_trip_ns(there, back)
          started = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
          there << true
          back.pop
          Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - started
        end
      end
    end
  end
end
