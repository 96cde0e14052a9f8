# frozen_string_literal: true

require_relative "attacks"
require_relative "clients"
require_relative "samples"
require_relative "server"
require_relative "tally"

module Soak
  # A cluster of two workers under attack. In the first part workers come, go and are killed; in the second they are left alone, and
  # must not grow.
  class Puma
    TOKEN = "soak"
    CLIENTS = 12
    STORM = 0.55 # of the time
    WARM_UP = 0.2 # of the calm

    CONFIG = <<~RUBY
      workers 2
      threads 5, 5
      worker_check_interval 1
      worker_shutdown_timeout 15
      worker_timeout 60
      lowlevel_error_handler do |error, env, status|
        asked = error.is_a?(Soak::Application::Failure) || error.is_a?(UncaughtThrowError)
        [status, {}, [asked ? "failed \#{env["HTTP_X_NUMBER"]}" : error.message]]
      end
    RUBY
    HEADWAY = <<~RUBY
      plugin :headway
      headway policy: :fair, log_interval: 20, recorder: { mode: :flight, wait_threshold: 0.3, events: 100_000 }
    RUBY
    # Not by options or RUBYLIB: a Puma that starts anew leaves them out.
    RACKUP = <<~RUBY
      require "#{ROOT}/test/soak/application"
      if ENV["SOAK_HEADWAY"] == "1"
        require "headway/metrics"
        require "headway/web"
        use Headway::Rack, server_timing: true, wait_threshold: 0.5
        map("/metrics") { run Headway::Metrics::Endpoint.new(directory: "metrics") }
        map("/headway") { run(Headway::Web.new(controls: ->(_env) { true }, directory: "captures") { true }) }
      end
      run Soak::Application.new(ENV.fetch("SOAK_DATABASE"))
    RUBY

    KINDS = { "preload" => "preload_app!\n", "phased" => "preload_app! false\n",
              "fork_worker" => "preload_app! false\nfork_worker 0\n" }.freeze

    attr_reader :tally, :server, :kind

    def initialize(kind, seconds, options, out: $stdout)
      @kind = kind
      @seconds = seconds
      @options = options
      @out = out
      @tally = Tally.new
      @tally.on_hang { "#{control("stats") rescue nil}\n#{Stress::Autopsy.of_group(@server.pid)}" }
      @samples = Samples.new
    end

    def headway? = @options.headway
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # @return [Boolean] whether nothing went lost
    def run
      @directory = File.realpath(Dir.mktmpdir("headway-soak"))
      start
      soak
      report
    ensure
      @server&.destroy
      FileUtils.rm_rf(@directory) unless @options.keep
    end

    # @return [Array<Integer>] the workers as Puma's master knows them
    def workers
      told = JSON.parse(control("stats"))["worker_status"].to_a
      told.select { |worker| worker["booted"] }.map { |worker| worker["pid"] }
    rescue SystemCallError, IOError, Net::OpenTimeout, Net::ReadTimeout, JSON::ParserError
      []
    end

    def control(command)
      path = "/#{command}?token=#{TOKEN}"
      Net::HTTP.start("127.0.0.1", @control, open_timeout: 5, read_timeout: 10) { |http| http.get(path) }.body
    end

    def get(path, headers = {})
      Net::HTTP.start("127.0.0.1", @port, open_timeout: 10, read_timeout: 40) { |http| http.get(path, headers) }
    end

    def post(path, body, headers)
      Net::HTTP.start("127.0.0.1", @port, open_timeout: 10, read_timeout: 60) { |http| http.post(path, body, headers) }
    end

    attr_reader :directory

    private

    def name = "puma #{@kind}"
    def left_out = @options.left_out

    def environment(database) = { "SOAK_HEADWAY" => headway? ? "1" : "0", "SOAK_DATABASE" => database, "RACK_ENV" => "production" }

    def start
      @port, @control = Array.new(2) { Harness::ServerProcess.free_port }
      database = File.join(@directory, "numbers.sqlite")
      fill(database)
      tune = headway? && @options.autotune ? "headway policy: :fair, autotune: { window: 2, samples: 20 }\n" : ""
      ports = "bind 'tcp://127.0.0.1:#{@port}'\nactivate_control_app 'tcp://127.0.0.1:#{@control}', auth_token: '#{TOKEN}'\n"
      File.write(File.join(@directory, "puma.rb"), [CONFIG, KINDS.fetch(@kind), *([HEADWAY, tune] if headway?), ports].join)
      File.write(File.join(@directory, "config.ru"), RACKUP)
      @server = Server.new(Gem.bin_path("puma", "puma"), "-C", "puma.rb", "config.ru", directory: @directory,
                           env: environment(database))
      @server.await("two workers") { workers.size == 2 }
    end

    def fill(path)
      SQLite3::Database.new(path) do |database|
        database.execute("CREATE TABLE numbers (number INTEGER)")
        database.transaction { 5_000.times { |number| database.execute("INSERT INTO numbers VALUES (?)", [number + 1]) } }
      end
    end

    def soak
      started = now
      clients = Clients.new(@port, @tally, @options.seed, left_out:).start(CLIENTS)
      attacks = Attacks.new(self, @options.seed).start
      until over?(started)
        calm(started, attacks)
        sleep 1
        sample
      end
      attacks.stop
      left = clients.stop
      @tally.fail(:hung, "clients that wait for ever: #{left.map(&:name).join(", ")}") if left.any?
      finish
    end

    def over?(started)
      return true if now - started > @seconds
      return false unless @server.ended?

      @tally.fail(:crash, "the server ended:\n#{@server.tail}")
    end

    def calm(started, attacks)
      storm = @options.calm ? 0 : @seconds * STORM
      attacks.calm! if now - started > storm
      @measures ||= now - started > storm + (@seconds - storm) * WARM_UP
    end

    def sample
      return unless @measures

      answered = @tally.answered
      (workers + [@server.pid]).each { |pid| @samples.take(pid, answered[pid] || 0, @tally.state(pid)) }
    end

    def finish
      return if @server.ended?

      control("stop")
      fault = @server.await_end
      @tally.fail(:end, fault) if fault
    end

    def report
      complaints = @server.complaints
      left = @server.destroy
      @tally.fail(:crash, complaints.first(20).join) if complaints.any?
      @tally.fail(:left, "processes #{left.join(", ")} outlive their master") if left.any?
      title = "#{name}#{" without Headway" unless headway?}, Ruby #{RUBY_VERSION}, #{@seconds.round} s"
      @tally.report(title, @samples, @out, (@directory if @options.keep))
    end
  end
end
