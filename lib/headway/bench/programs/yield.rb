# frozen_string_literal: true

# How much a piece of work yields: the same number of calls by one thread, then shared out among several. Had nothing but their
# number counted, they would take that part of the time (ideal_s); work that never yields takes all of it.
# Usage: yield.rb '{"work": "sleep(0.001)", "concurrency": 2, "seconds": 1.5, "priority": 0, "lib": null}'
# With Headway's lib directory, also by the events of one thread.

require "json"

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def compute(seconds)
  until_s = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
  nil until Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) >= until_s
end

# Four milliseconds, some of them asleep.
def mix(sleep_ms)
  lambda do
    compute((4 - sleep_ms) / 1000.0)
    sleep(sleep_ms / 1000.0)
  end
end

def deflate
  require "zlib"
  data = Random.new(1).bytes(1 << 20)
  -> { Zlib.deflate(data) }
end

def work_named(name)
  case name
  when "sleep(0.001)" then -> { sleep(0.001) }
  when "2+2" then -> { 2 + 2 }
  when "deflate" then deflate
  else mix(name.to_i / 25)
  end
end

def run(work, threads, calls)
  start = now
  Array.new(threads) do
    Thread.new do
      Thread.current.priority = @priority
      calls.times { work.call }
    end
  end.each(&:join)
  now - start
end

config = JSON.parse(ARGV.fetch(0))
@priority = config.fetch("priority")
work = work_named(config.fetch("work"))
concurrency = config.fetch("concurrency")
seconds = config.fetch("seconds")

# As many calls as take so long, in equal shares.
calls = 1
calls *= 2 while run(work, 1, calls) < seconds / 10.0
share = [(calls * seconds / run(work, 1, calls) / concurrency).ceil, 1].max

alone_s = run(work, 1, share * concurrency)
concurrent_s = run(work, concurrency, share)
ideal_s = alone_s / concurrency
gained = (alone_s - concurrent_s) / (alone_s - ideal_s)

if config["lib"]
  $LOAD_PATH.unshift(config["lib"])
  require "headway/estimate"
  times = Thread.new { Headway::Native.metered { share.times { work.call } } }.value
  event_yield_pct = Headway::Estimate::Sample.from(times, share).yield_pct
end

puts JSON.generate(
  figures: { yield_pct: (100 * gained).clamp(0, 100), event_yield_pct:, concurrent_s:, ideal_s: },
  policy: defined?(Headway.started?) && Headway.started? ? Headway.policy : nil
)
