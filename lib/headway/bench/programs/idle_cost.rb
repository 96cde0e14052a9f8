# frozen_string_literal: true

# A single thread with nobody to compete with, while Headway is switched on and off: what does its presence cost?
# Usage: ruby -rheadway idle_cost.rb '{"work": "compute", "preempt": "signal", "blocks": 40, "window_s": 0.2}'; prints the
# rates of each block of four windows, on, off, off, on. The work is "compute", or "release": many short releases of the GVL.

require "json"

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
def cpu_now = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

config = JSON.parse(ARGV.fetch(0))
sink = File.open(File::NULL, "w")
works = {
  "compute" => lambda do
    number = 0
    number += 1 while number < 10_000
    number
  end,
  "release" => lambda do
    100.times { sink.syswrite("x") }
    100
  end
}
work = works.fetch(config.fetch("work"))

# By the process's CPU time: what else runs on the machine would drown a cost this small, and Headway's own native threads
# count too.
window = lambda do |mode|
  mode == :headway ? Headway.start(policy: :fair, preempt: config.fetch("preempt").to_sym) : Headway.stop
  work.call
  count = 0
  cpu = cpu_now
  deadline = now + config.fetch("window_s")
  count += work.call while now < deadline
  [mode, count, cpu_now - cpu]
end

blocks = Array.new(config.fetch("blocks")) do
  windows = %i[headway stock stock headway].map(&window)
  windows.group_by(&:first).transform_values { |same| { iterations_per_cpu_s: same.sum { _2 } / same.sum { _3 } } }
end
Headway.stop
puts JSON.generate(blocks:)
