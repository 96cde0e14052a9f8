# frozen_string_literal: true

# Gives jobs to Sidekiq and collects how long each took, as load.rb does with requests.
# Usage: REDIS_URL=… jobs.rb '{"paths": {"/light": 0.9, "/heavy": 0.1}, "seed": 1, "rate": 25.0, "requests": 1000}'   open loop
#    or  REDIS_URL=… jobs.rb '{…, "connections": 20, "seconds": 5}'                        so many in the queue all the time

require "json"
require "redis_client"
require "securerandom"
require_relative "arrivals"

# One run of jobs.
class Jobs
  QUEUE = "queue:default"
  TIMES = "times"

  def initialize(config)
    @config = config
    @arrivals = Arrivals.new(config)
    @redis = RedisClient.new(url: ENV.fetch("REDIS_URL"))
    @redis.call("FLUSHDB")
    @late = []
  end

  def open_loop
    start = now
    arrivals = @arrivals.poisson
    arrivals.each do |due, path|
      left = start + due - now
      sleep(left) if left.positive?
      push(path, start + due)
    end
    sleep(0.02) until done >= arrivals.size
    { counted: arrivals.size, seconds: now - start, times:, late: @late }
  end

  # A fifth as long before that warms up.
  def closed_loop
    seconds = @config.fetch("seconds")
    keep_busy(seconds / 5.0)
    before, start = done, now
    keep_busy(seconds)
    { counted: done - before, seconds: now - start }
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def done = @redis.call("LLEN", TIMES)

  # Ends when all are done, as load.rb does: what is under way when the time is up would be charged to an arm but not be paid for.
  def keep_busy(seconds)
    deadline = now + seconds
    while now < deadline
      (@config.fetch("connections") - @redis.call("LLEN", QUEUE)).times { push(@arrivals.next_in_turn, now) }
      sleep(0.01)
    end
    sleep(0.002) until done == @late.size
  end

  # As Sidekiq's own client writes it.
  def push(path, due)
    ms = (Time.now.to_f * 1000).round
    job = { class: path.delete_prefix("/").capitalize, args: [due], jid: SecureRandom.hex(12), queue: "default", retry: false,
            created_at: ms, enqueued_at: ms }
    @redis.call("LPUSH", QUEUE, JSON.generate(job))
    @late << (now - due)
  end

  def times
    @redis.call("LRANGE", TIMES, 0, -1).map { |row| JSON.parse(row) }.group_by { |name, _| "/#{name}" }
          .transform_values { |rows| rows.map(&:last) }
  end
end

config = JSON.parse(ARGV.fetch(0))
jobs = Jobs.new(config)
puts JSON.generate(config.key?("rate") ? jobs.open_loop : jobs.closed_loop)
