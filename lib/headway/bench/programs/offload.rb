# frozen_string_literal: true

# Fibers compress random bytes, and one ticks every millisecond: how long do they take, and how long does the loop stand still?
# Then, if "small" is set, what short operations cost, in turns with and without the arm's hook (and Headway's scheduler of threads).
# Usage: offload.rb '{"arm": "headway", "fibers": 6, "mib": 8, "small": true, "rounds": 15, "twenty_kb": "/a/file/of/so/much"}'

require "etc"
require "json"
require "zlib"
require_relative "../../../headway"

config = JSON.parse(ARGV.fetch(0))
FAIR = config.fetch("arm").end_with?("_fair") # with Headway's scheduler of threads on
ARM = config.fetch("arm").delete_suffix("_fair")
require "async" if ARM.start_with?("async")

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

# Feature #20876's own example.
class ThreadPerOp
  def call(work) = Thread.new { work.call }.join # from Ruby 4.0 on not a Proc
end

# A queue and as many threads as there are processors.
class FixedPool
  def initialize
    @jobs = Thread::Queue.new
    Etc.nprocessors.times { Thread.new { serve } }
  end

  def call(work)
    done = Thread::Queue.new
    @jobs << [work, done]
    done.pop
  end

  private

  def serve
    while (work, done = @jobs.pop)
      work.call
      done << true
    end
  end
end

# @return [#call, nil] what the arm hands operations to
def make_pool
  pool = case ARM
         when "thread_per_op" then ThreadPerOp.new
         when "fixed_pool" then FixedPool.new
         when "headway", "async_headway" then Headway::OffloadPool.new
         end
  pool&.define_singleton_method(:close) { nil } # it is used under several schedulers, and Async's would close it
  pool
end

def make_scheduler(pool)
  ARM.start_with?("async") ? Async::Scheduler.new(worker_pool: pool) : Headway::FiberScheduler.new(pool:, stall_ms: nil)
end

# Runs the block on the loop's fiber and the loop to its end, under a scheduler with the pool.
def loop_with(pool)
  Headway.start(policy: :fair) if FAIR && pool
  Thread.new do
    scheduler = make_scheduler(pool)
    Fiber.set_scheduler(scheduler)
    yield
    scheduler.run
  end.join
ensure
  Headway.stop if FAIR && pool
end

def measure_deflate(pool, fibers, bytes)
  data = Random.bytes(bytes)
  gaps = []
  left = fibers
  start = now
  loop_with(pool) do
    Fiber.schedule do
      last = now
      until left.zero?
        sleep 0.001
        tick = now
        gaps << (tick - last)
        last = tick
      end
    end
    # The compressing ones start in the loop: what holds it, holds the ticker.
    fibers.times { Fiber.schedule { sleep(0) && Zlib.deflate(data) && left -= 1 } }
  end
  gaps.sort!
  { total_s: now - start, loop_gap_p99_ms: gaps[(gaps.size * 0.99).ceil - 1] * 1e3, loop_gap_max_ms: gaps.last * 1e3 }
end

FILE = File.expand_path("offload.rb", __dir__)
BYTES = Random.bytes(1 << 20)
GLOB = File.expand_path("../../**/*", __dir__)
TWENTY_KB = config.fetch("twenty_kb")

# name => [how often in a round, operation]
SMALL = {
  "File.stat" => [2_000, -> { File.stat(FILE) }],
  "deflate 100 B" => [500, (hundred = BYTES[0, 100]; -> { Zlib.deflate(hundred) })],
  "deflate 4 KiB" => [200, (four = BYTES[0, 4096]; -> { Zlib.deflate(four) })],
  "deflate 64 KiB" => [20, (sixty = BYTES[0, 65_536]; -> { Zlib.deflate(sixty) })],
  "deflate 1 MiB" => [1, -> { Zlib.deflate(BYTES) }],
  "Dir.glob" => [3, -> { Dir.glob(GLOB) }],
  "open, close" => [500, -> { File.open(FILE).close }],
  "read 20 KB" => [500, -> { File.read(TWENTY_KB) }]
}.freeze

# @return [Float] µs per operation
def time(pool, count, operation)
  seconds = nil
  loop_with(pool) do
    Fiber.schedule do
      count.times { operation.call } if count > 1 # what is learnt is learnt, what is loaded is loaded
      start = now
      count.times { operation.call }
      seconds = now - start
    end
  end
  seconds / count * 1e6
end

def median(values) = values.sort[values.size / 2]

def measure_small(pool, rounds)
  SMALL.transform_values do |count, operation|
    pairs = Array.new(rounds) do |round|
      with = time(pool, count, operation) if round.even?
      without = time(nil, count, operation)
      with ||= time(pool, count, operation)
      [with, with / without]
    end
    { us: median(pairs.map(&:first)), ratio: median(pairs.map(&:last)) }
  end
end

figures = measure_deflate(make_pool, config.fetch("fibers"), config.fetch("mib") << 20)
figures[:small] = measure_small(make_pool, config.fetch("rounds")) if config.fetch("small")
puts JSON.generate(figures:, policy: nil)
