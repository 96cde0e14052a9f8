# frozen_string_literal: true

# The same arithmetic by several processes of several threads each, every combination in turn. Threads of one process share a GVL,
# where there is one; processes share nothing.
# Usage: processes.rb '{"command": ["ruby"], "processes": [1, 2], "threads": [1, 2], "iterations": 5000000, "priority": 0}'
# Processes are started anew rather than forked: some Rubies can't fork.
# Keep to syntax that Ruby 2.6 parses: JRuby runs this, too, old ones included.

require "json"
require_relative "arithmetic"

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# JRuby has no clock of the process's CPU time.
def cpu
  times = Process.times
  times.utime + times.stime
end

# Rubies other than CRuby compile beside the program, some time after it began.
def warm_up(share)
  work(share / 10)
  start = now
  work(10_000) while RUBY_ENGINE != "ruby" && now - start < 2
end

# Warms up, says so, waits for the start, and says how much CPU time it took.
def be_worker(config)
  share = config.fetch("share")
  warm_up(share)
  $stdout.puts JSON.generate(ready: true)
  $stdout.flush
  exit unless $stdin.gets
  before = cpu
  Array.new(config.fetch("threads")) do
    Thread.new do
      Thread.current.priority = config.fetch("priority")
      work(share)
    end
  end.each(&:join)
  puts JSON.generate(cpu_s: cpu - before)
end

def start_worker(config, threads, share)
  settings = { worker: true, threads: threads, share: share, priority: config.fetch("priority") }
  IO.popen([*config.fetch("command"), __FILE__, JSON.generate(settings)], "r+")
end

def measure(config, processes, threads)
  share = (config.fetch("iterations") / (processes * threads).to_f).ceil
  workers = Array.new(processes) { start_worker(config, threads, share) }
  workers.each { |worker| JSON.parse(worker.gets) }
  start = now
  workers.each do |worker|
    worker.puts
    worker.flush
  end
  cpu_s = workers.sum { |worker| JSON.parse(worker.gets).fetch("cpu_s") }
  wall_s = now - start
  { wall_s: wall_s, cpu_pct: cpu_s / wall_s * 100 }
ensure
  workers&.each(&:close)
end

config = JSON.parse(ARGV.fetch(0))
if config["worker"]
  be_worker(config)
  exit
end

alone = measure(config, 1, 1)
figures = { "1×1" => alone }
config.fetch("processes").product(config.fetch("threads")).each do |processes, threads|
  figures["#{processes}×#{threads}"] ||= measure(config, processes, threads)
end
figures.each_value { |one| one[:speedup] = alone[:wall_s] / one[:wall_s] }

puts JSON.generate(figures: figures, policy: defined?(Headway.started?) && Headway.started? ? Headway.policy : nil)
