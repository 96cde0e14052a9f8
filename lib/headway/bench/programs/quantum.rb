# frozen_string_literal: true

# One thread computes, another sleeps as long as each computation takes. Side by side they could be done in the time of
# either; what the sleeping thread needs beyond that is spent waiting for the GVL.
# Usage: quantum.rb '{"calibrate": true}', then quantum.rb with what that printed, iterations, priority, and whether to compute apart,
# in a process of its own.

require "json"

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def measure
  start = now
  yield
  now - start
end

def fib(n) = n < 2 ? n : fib(n - 2) + fib(n - 1)

config = JSON.parse(ARGV.fetch(0))

if config["calibrate"]
  fib_n = (1..50).find { |n| measure { fib(n) } >= 0.05 }
  sleep_s = Array.new(3) { measure { fib(fib_n) } }.min
  puts JSON.generate(fib_n:, sleep_s:)
  exit
end

iterations = config.fetch("iterations")
fib_n = config.fetch("fib_n")
sleep_s = config.fetch("sleep_s")

start = now
io = Thread.new do
  Thread.current.name = "sleeps"
  iterations.times { sleep(sleep_s) }
  now - start
end
cpu = Thread.new do
  Thread.current.name = "computes"
  Thread.current.priority = config.fetch("priority")
  compute = -> { iterations.times { fib(fib_n) } }
  config["apart"] ? Process.wait(fork(&compute)) : compute.call
  now - start
end
io_s = io.value
cpu_s = cpu.value
total_s = now - start

ideal_s = iterations * sleep_s
puts JSON.generate(
  figures: { total_s:, waste_s: total_s - ideal_s, io_waste_s: io_s - ideal_s, cpu_s: },
  policy: defined?(Headway.started?) && Headway.started? ? Headway.policy : nil
)
