# frozen_string_literal: true

module Harness
  # The clock that tests go by.
  module Timing
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def elapsed
      started = now
      yield
      now - started
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
