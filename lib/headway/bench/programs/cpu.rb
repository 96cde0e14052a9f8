# frozen_string_literal: true

# The same arithmetic by one thread and shared out among several: CPU-bound threads take turns, so nothing is gained.
# Usage: cpu.rb '{"threads": 8, "iterations": 5000000, "priority": 0}'

require "json"

def measure
  wall, cpu = clocks
  yield
  wall_end, cpu_end = clocks
  wall_s = wall_end - wall
  cpu_s = cpu_end - cpu
  { wall_s:, cpu_s:, cpu_pct: cpu_s / wall_s * 100 }
end

def clocks = [Process::CLOCK_MONOTONIC, Process::CLOCK_PROCESS_CPUTIME_ID].map { |id| Process.clock_gettime(id) }

def work(iterations)
  number = 1
  iterations.times { number = (number * 1_000_003 + 97) % 1_000_000_007 }
  number
end

config = JSON.parse(ARGV.fetch(0))
threads = config.fetch("threads")
iterations = config.fetch("iterations")
share = (iterations / threads.to_f).ceil
work(iterations / 10) # warm caches and, with a JIT, compiled code for both

GC.start
GC.disable
single = measure { work(iterations) }
several = measure do
  Array.new(threads) do
    Thread.new do
      Thread.current.priority = config.fetch("priority")
      work(share)
    end
  end.each(&:join)
end

puts JSON.generate(
  figures: { single:, threads: several },
  policy: defined?(Headway.started?) && Headway.started? ? Headway.policy : nil
)
