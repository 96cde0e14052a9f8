# frozen_string_literal: true

# A real Sidekiq with jobs that are light or heavy; it ends when it is killed.
# Usage: REDIS_URL=… sidekiq.rb '{"threads": 10, …}', settings as in puma.rb; prints {"policy": …} when it works. Each job appends
# its path and the time since it was due to the Redis list "times".

require "json"
require "logger"
require "sidekiq/cli"
require_relative "work"

# Sidekiq has things of its own to say there.
OUTPUT = $stdout.dup
$stdout.reopen(File::NULL)

CONFIG = JSON.parse(ARGV.fetch(0))
WORK = Work.new(CONFIG)

# What every job does.
module Timed
  def self.included(job) = job.include(Sidekiq::Job)

  def perform(due)
    work
    seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - due
    Sidekiq.redis { |redis| redis.call("RPUSH", "times", JSON.generate([self.class.name.downcase, seconds])) }
  end
end

# Mostly waits.
class Light
  include Timed

  def work = WORK.light
end

# Computes.
class Heavy
  include Timed

  def work = WORK.heavy
end

Sidekiq.configure_server do |config|
  config.logger = Logger.new(nil)
  config.on(:startup) do
    OUTPUT.puts JSON.generate(policy: (Headway.policy if defined?(Headway.started?) && Headway.started?))
    OUTPUT.flush
  end
end

cli = Sidekiq::CLI.instance
cli.parse(["--require", __FILE__, "--concurrency", CONFIG.fetch("threads").to_s])
cli.run(boot_app: false)
