# frozen_string_literal: true

# Headway::Autotune on a pool of threads whose jobs shift from I/O to computing and back.
#
#   ruby -Ilib bench/autotune.rb [seconds of each phase] [seconds of a window]
#
# Jobs follow one another without end, so more threads are more throughput while jobs sleep, and only longer jobs while they compute.
# Computing is stood in for by sleeping with the GVL held, a millisecond at a time: it needs the GVL as Ruby code does, and takes as long
# however busy the machine is.

require "fiddle"
require "headway/autotune"

# As many threads as it is told, each with one job after the other.
class Pool
  RANGE = (1..12)
  # Milliseconds of a job: asleep, with the GVL.
  PHASES = { "I/O" => [9, 1], "CPU" => [1, 9] }.freeze
  HOLD_US = Fiddle::Function.new(Fiddle.dlopen(nil)["usleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)

  attr_reader :range, :value
  attr_accessor :phase

  def initialize(size)
    @range = RANGE
    @phase = "I/O"
    @threads = []
    self.value = size
  end

  def value=(size)
    @value = size
    @threads << Thread.new(@threads.size) { |place| work while place < @value } while @threads.size < size
    @threads.pop(@threads.size - size).each(&:join)
  end

  private

  def work
    job = Headway::Work.start(:job, "job")
    asleep, held = PHASES.fetch(@phase)
    sleep(asleep / 1000.0)
    held.times { HOLD_US.call(1000) }
    job.finish
  end
end

phase_s, window_s = (ARGV + %w[150 1][ARGV.size..]).map { |word| Float(word) }
$stdout.sync = true
Headway.start
pool = Pool.new(4)
started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
log = ->(line) { puts format("%6.1f s  %s", Process.clock_gettime(Process::CLOCK_MONOTONIC) - started, line) }
tuner = Headway::Autotune.start(window: window_s, windows: 8, samples: 20, quantum_ms: false, knobs: { threads: pool }, log: log)
%w[I/O CPU I/O].each do |phase|
  pool.phase = phase
  sleep(phase_s)
  puts format("%6.1f s  %s: %d threads", Process.clock_gettime(Process::CLOCK_MONOTONIC) - started, phase, tuner.base[:threads])
end
Headway.stop
pool.value = 0
