# frozen_string_literal: true

# Several threads sleep 5 ms again and again beside computing ones, while Headway is switched on and off: what do its
# quick wake-ups cost the computing threads?
# Usage: ruby -rheadway wakeups.rb '{"cpu_threads": 4, "preempt": "signal", "blocks": 12, "window_s": 0.5}'; prints the
# rates of each block of four windows, on, off, off, on.

require "json"

IO_THREADS = 4
SLEEP_S = 0.005
SETTLE_S = 0.1

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

config = JSON.parse(ARGV.fetch(0))
counts = Array.new(config.fetch("cpu_threads"), 0)
wakeups = Array.new(IO_THREADS, 0)
io_clocks = Array.new(IO_THREADS, 0.0)

counts.each_index do |index|
  Thread.new do
    while true
      number = 0
      number += 1 while number < 1_000
      counts[index] += number
    end
  end
end

wakeups.each_index do |index|
  Thread.new do
    while true
      sleep(SLEEP_S)
      wakeups[index] += 1
      io_clocks[index] = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
    end
  end
end

snapshot = -> { [now, counts.sum, wakeups.sum, io_clocks.sum] }

# Under stock our own wake-up is late, so a window lasts as long as it lasts and rates are by what the clock says.
window = lambda do |mode|
  mode == :headway ? Headway.start(policy: :fair, preempt: config.fetch("preempt").to_sym) : Headway.stop
  sleep(SETTLE_S)
  before = snapshot.call
  sleep(config.fetch("window_s"))
  [mode, *snapshot.call.zip(before).map { |late, early| late - early }]
end

rates = lambda do |windows|
  elapsed, iterations, woken, io_cpu = windows.map { |_, *deltas| deltas }.transpose.map(&:sum)
  {
    iterations_per_s: iterations / elapsed,
    iterations_per_own_s: iterations / (elapsed - io_cpu), # of the time that the sleeping threads' own work left over
    wakeups_per_s: woken / elapsed
  }
end

blocks = Array.new(config.fetch("blocks")) do
  windows = %i[headway stock stock headway].map(&window)
  windows.group_by(&:first).transform_values(&rates)
end
Headway.stop
puts JSON.generate(blocks:)
