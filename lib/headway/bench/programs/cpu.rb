# frozen_string_literal: true

# The same arithmetic by one thread and shared out among several: CPU-bound threads take turns, so nothing is gained.
# Usage: cpu.rb '{"threads": 8, "iterations": 5000000, "priority": 0}'
# Keep to syntax that Ruby 2.6 parses: JRuby runs this, too, old ones included.

require "json"
require_relative "arithmetic"
require_relative "measure"

config = JSON.parse(ARGV.fetch(0))
threads = config.fetch("threads")
iterations = config.fetch("iterations")
share = (iterations / threads.to_f).ceil
work(iterations / 10) # warm caches and, with a JIT, compiled code for both
warm_s = RUBY_ENGINE == "ruby" ? 0 : 2 # others compile beside the program, some time after it began
start = clocks.first
work(10_000) while clocks.first - start < warm_s

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
  figures: { single: single, threads: several },
  policy: defined?(Headway.started?) && Headway.started? ? Headway.policy : nil
)
