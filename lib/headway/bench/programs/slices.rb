# frozen_string_literal: true

# Two computing threads write down when the GVL passed from one to the other: how long are their slices?
# Usage: slices.rb '{"seconds": 2}'; prints the lengths in milliseconds.

require "json"

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

config = JSON.parse(ARGV.fetch(0))
deadline = now + config.fetch("seconds")
slices_ms = []
holder = nil
since = last = now

# The GVL can pass on where a call returns and where the VM jumps: so right after the clock was read, which makes the reading
# stale, but not between the test and the assignments under it. A slice begins with the last reading of the one before.
threads = Array.new(2) do |own|
  Thread.new do
    while last < deadline
      time = now
      if holder == own
        last = time
      else
        slices_ms << ((last - since) * 1_000)
        holder = own
        since = last
      end
    end
  end
end
threads.each(&:join)

# The first ones are from before both threads ran.
puts JSON.generate(
  slices_ms: slices_ms[2..] || [],
  policy: defined?(Headway.started?) && Headway.started? ? Headway.policy : nil
)
