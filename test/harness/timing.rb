# frozen_string_literal: true

require "harness/time_limit"

module Harness
  # The clock that tests go by, and waiting.
  module Timing
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def elapsed
      started = now
      yield
      now - started
    end

    # Seconds that processors worked for this process: a machine that stops or is busy with others adds nothing.
    def worked = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

    # After so many seconds something counts as lost.
    def patience(seconds) = seconds * TimeLimit.seconds_scale

    # Waits for a condition without hiding for how long. What lies beyond a second between two looks doesn't count: a machine that
    # is stopped or busy with others gives nobody the time in which the condition could have come.
    #
    # @param details [Proc, nil] says more when it does not come
    # @return what the block returned in the end
    def await(what, limit: 10, pause: 0.001, details: nil)
      waited = 0
      looked_at = now
      until (result = yield)
        flunk "#{what}: not within #{limit} s#{": #{details.call}" if details}" if waited > patience(limit)
        sleep pause
        waited += [now - looked_at, 1].min
        looked_at = now
      end
      result
    end

    # Stops a process. One of its threads takes the signal and has the others stop: until it gets a processor, they go on and may answer.
    def stop_process(pid)
      Process.kill(:STOP, pid)
      await("process #{pid} to stop") { Dir["/proc/#{pid}/task/*/stat"].all? { |file| File.read(file)[/\) (\w)/, 1] == "T" } }
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
