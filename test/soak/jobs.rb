# frozen_string_literal: true

# What Sidekiq is started with: jobs that count in Redis what became of them.

require "sidekiq"
require "timeout"
require_relative "../harness/computing"
if ENV["SOAK_HEADWAY"] == "1"
  require "headway"
  require "headway/sidekiq"
end

Sidekiq.configure_server do |config|
  config.logger.level = Logger::WARN
  config.average_scheduled_poll_interval = 1
  if ENV["SOAK_HEADWAY"] == "1"
    Headway::Sidekiq.install(config, recorder: { mode: :flight, wait_threshold: 0.5, events: 100_000 })
    config.on(:startup) { Headway::Autotune.start(log: ->(_line) {}, window: 2, samples: 20) } if ENV["SOAK_AUTOTUNE"] == "1"
  end
end

module Soak
  # A job has a number. It says in Redis that it starts and that it is done, before anything can strike between the two.
  class Job
    include ::Sidekiq::Job
    include Harness::Computing

    sidekiq_options retry: 25
    sidekiq_retry_in { 1 }

    class Failure < StandardError; end

    KINDS = %w[compute sleep naps queue fails twice timeout helpers redis].freeze

    def perform(number, kind)
      attempt = ::Sidekiq.redis { |redis| redis.call("HINCRBY", "soak:started", number, 1) }
      send("do_#{kind}", number, attempt)
      ::Sidekiq.redis { |redis| redis.call("HINCRBY", "soak:done", number, 1) }
    end

    private

    def do_compute(number, _attempt) = compute(100_000 + number % 7 * 100_000)
    def do_sleep(number, _attempt) = sleep(number % 50 / 1000.0)
    def do_naps(*) = 30.times { sleep 0.0002 }

    def do_queue(number, _attempt)
      queue = Thread::Queue.new
      Thread.new { compute(20_000); queue << number }
      queue.pop(timeout: 30) == number or raise "a value got lost"
    end

    def do_fails(_number, attempt)
      compute(20_000)
      raise Failure, "once" if attempt == 1
    end

    def do_twice(_number, attempt)
      sleep 0.002
      raise Failure, "twice" if attempt <= 2
    end

    def do_timeout(*)
      Timeout.timeout(0.01) { loop { 1 + 1 } }
      raise "no timeout"
    rescue Timeout::Error
      compute(10_000)
    end

    def do_helpers(number, _attempt)
      threads = Array.new(3) { |index| Thread.new { index.even? ? compute(20_000) : sleep(0.001); number + index } }
      killed = Thread.new { loop { 1 + 1 } }
      threads.map(&:value) == [number, number + 1, number + 2] or raise "a value got lost"
      killed.kill.join(30) or raise "a thread outlives its kill"
    end

    def do_redis(number, _attempt)
      20.times do |index|
        word = "#{number}-#{index}"
        ::Sidekiq.redis { |redis| redis.call("ECHO", word) } == word or raise "Redis answered another"
      end
    end
  end
end
