# frozen_string_literal: true

# What a block takes; required by cpu.rb and io.rb.
# Keep to syntax that Ruby 2.6 parses: JRuby runs this, too, old ones included.

def measure
  wall, cpu = clocks
  yield
  wall_end, cpu_end = clocks
  wall_s = wall_end - wall
  cpu_s = cpu_end - cpu
  { wall_s: wall_s, cpu_s: cpu_s, cpu_pct: cpu_s / wall_s * 100 }
end

# JRuby has no clock of the process's CPU time.
def clocks
  times = Process.times
  [Process.clock_gettime(Process::CLOCK_MONOTONIC), times.utime + times.stime]
end
