# frozen_string_literal: true

require "sidekiq"
require "headway/control/client"
require_relative "jobs"
require_relative "samples"
require_relative "server"
require_relative "settings"
require_relative "tally"

module Soak
  # Sidekiqs one after the other, each told to end in the middle of its work, with a real Redis between (apt-get install
  # redis-server, or REDIS_SERVER=path). At the end every job has to be done: once, or once more for each time a Sidekiq that ended
  # may have handed it back.
  class Sidekiq
    THREADS = 10
    TERM_EVERY = 25..45 # seconds; the last process has what is left, and is measured
    WAITING = 300 # jobs in the queue at the most
    DRAIN = 120

    def initialize(seconds, options, out: $stdout)
      @seconds = seconds
      @options = options
      @out = out
      @tally = Tally.new
      @samples = Samples.new
      @random = Random.new(options.seed)
      @pushed = 0
      @ends = 0
    end

    # @return [Boolean] whether nothing went lost
    def run
      @directory = File.realpath(Dir.mktmpdir("headway-soak"))
      start_redis
      start
      soak
      drain
      stop
      judge
      report
    ensure
      @server&.destroy
      end_redis
      @pool&.shutdown(&:close)
      FileUtils.rm_rf(@directory) unless @options.keep
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def start_redis
      @port = Harness::ServerProcess.free_port
      command = Harness::ServerProcess.redis(@port, @directory)
      @redis = Harness::ServerProcess.new(*command, directory: @directory, program: true)
      deadline = now + 30
      sleep 0.05 until @redis.output.match?(/[Rr]eady to accept/) || now > deadline
      @pool = ::Sidekiq::RedisConnection.create(url: "redis://127.0.0.1:#{@port}/0", size: 3, logger: Logger.new(nil))
    end

    def start
      @server&.destroy
      environment = { "SOAK_HEADWAY" => @options.headway ? "1" : "0", "SOAK_AUTOTUNE" => @options.autotune ? "1" : "0",
                      "REDIS_URL" => "redis://127.0.0.1:#{@port}/0", "APP_ENV" => "development" }
      command = [Gem.bin_path("sidekiq", "sidekiq"), "-r", "#{ROOT}/test/soak/jobs.rb", "-c", THREADS.to_s, "-t", "3"]
      @server = Server.new(*command, directory: @directory, env: environment)
      @started = now
      @next_end = now + @random.rand(TERM_EVERY)
    end

    def end_redis
      return unless @redis

      Process.kill(:KILL, @redis.pid)
      Process.wait(@redis.pid)
    end

    def redis(*command) = @pool.with { |connection| connection.call(*command) }

    def soak
      over = now + @seconds
      until now > over
        push(20) if redis("LLEN", "queue:default") < WAITING
        restart if now > @next_end && over - now > @seconds / 2
        look
        sleep 0.05
      end
    end

    def push(count)
      client = ::Sidekiq::Client.new(pool: @pool)
      count.times do
        @pushed += 1
        arguments = [@pushed, Job::KINDS.sample(random: @random)]
        client.push("class" => "Soak::Job", "args" => arguments, "queue" => "default", "retry" => 25)
      end
    end

    def look
      return if @looked && now - @looked < 2

      @looked = now
      raise "Sidekiq ended by itself:\n#{@server.tail}" if @server.ended?

      socket = "#{@directory}/control/#{@server.pid}.sock"
      change(Headway::Control::Client.new(@server.pid, socket)) if File.exist?(socket)
      @samples.take(@server.pid, redis("HLEN", "soak:done").to_i) if now - @started > 15
    end

    def change(client)
      client.set(Settings.any(@random))
      client.stats
      @tally.count(:set)
    rescue Headway::Control::ClientError => error
      @tally.fail(:control, error.message)
    end

    def restart
      stop
      start
    end

    def stop
      @ends += 1
      @server.signal(:TERM)
      fault = @server.await_end
      @tally.fail(:end, fault) if fault
    end

    # Until everything is done, retried jobs too.
    def drain
      deadline = now + DRAIN
      until waiting.zero?
        return @tally.fail(:hung, "#{waiting} jobs aren't done #{DRAIN} s after the last one came") if now > deadline

        look
        sleep 0.2
      end
      sleep 1
    end

    def waiting
      @pool.with do |connection|
        connection.call("LLEN", "queue:default") + connection.call("ZCARD", "retry") + connection.call("ZCARD", "schedule") +
          connection.call("ZCARD", "dead") + [@pushed - connection.call("HLEN", "soak:done"), 0].max
      end
    end

    def judge
      done = redis("HGETALL", "soak:done").to_h { |number, count| [number.to_i, count.to_i] }
      (1..@pushed).each do |number|
        count = done[number] || 0
        if count.zero? then @tally.fail(:lost, "job #{number} is not done")
        elsif count == 1 then @tally.count(:done)
        elsif count <= 1 + @ends then @tally.count(:done_again_after_an_end)
        else @tally.fail(:doubled, "job #{number} was done #{count} times")
        end
      end
      again = @tally.counts[:done_again_after_an_end]
      return unless again > THREADS * @ends

      @tally.fail(:doubled, "#{again} jobs were done again: Sidekiq hands back #{THREADS} at each of #{@ends} ends")
    end

    def report
      complaints = @server.complaints.grep_v(/Soak::Job::Failure/)
      @tally.fail(:crash, complaints.first(20).join) if complaints.any?
      title = "sidekiq#{" without Headway" unless @options.headway}, Ruby #{RUBY_VERSION}"
      @tally.report("#{title}, #{@seconds.round} s, #{@pushed} jobs, #{@ends} ends", @samples, @out, (@directory if @options.keep))
    end
  end
end
