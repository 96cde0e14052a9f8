# frozen_string_literal: true

module Harness
  # The clock that tests go by, and waiting.
  module Timing
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def elapsed
      started = now
      yield
      now - started
    end

    # Waits for a condition without hiding for how long.
    #
    # @param details [Proc, nil] says more when it does not come
    def await(what, limit: 10, pause: 0.001, details: nil)
      deadline = now + limit
      until yield
        flunk "#{what}: not within #{limit} s#{": #{details.call}" if details}" if now > deadline
        sleep pause
      end
    end

    # Spins in Ruby code, so with interrupt checks, holding the GVL as long as it gets it.
    def compute(seconds)
      deadline = now + seconds
      count = 0
      count += 1 while now < deadline
      count
    end
  end
end
