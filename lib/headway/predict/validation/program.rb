# frozen_string_literal: true

# The program that `bin/validate` predicts and measures: threads that do one request after the other, most of them light (three short
# computations, a wait after each) and a few heavy ones (one long computation, a wait). Computations are measured in CPU time of the
# thread, waits are sleeps. Prints a line of JSON when it can begin, reads when to, in seconds of CLOCK_MONOTONIC, so that several
# processes begin together however long each took to start, and prints a line of JSON at the end.
#
#   program.rb THREADS SECONDS SEED
require "json"

threads, seconds, seed = ARGV[0].to_i, ARGV[1].to_f, ARGV[2].to_i
warm_up = [seconds * 0.1, 0.5].max
mark = defined?(Headway.mark) ? Headway.method(:mark) : ->(_name, &block) { block.call }

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def compute(seconds)
  done = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
  nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < done
end

def light(random)
  3.times do
    compute(random.rand(0.0003..0.0013))
    sleep(random.rand(0.002..0.006))
  end
end

def heavy(random)
  compute(random.rand(0.02..0.06))
  sleep(random.rand(0.002..0.006))
end

puts JSON.generate(ready: true)
$stdout.flush
from = $stdin.gets.to_f + warm_up
til = from + seconds
finished = Array.new(threads) do |i|
  Thread.new do
    random = Random.new((seed * 1_000) + i)
    mine = []
    while (begun = now) < til
      name = random.rand < 0.04 ? "heavy" : "light"
      mark.call(name) { name == "heavy" ? heavy(random) : light(random) }
      ended = now
      mine << [name, ended - begun] if ended.between?(from, til)
    end
    mine
  end
end
puts JSON.generate(finished.flat_map(&:value).group_by(&:first).transform_values { |pairs| pairs.map { |_, s| (s * 1000).round(4) } })
