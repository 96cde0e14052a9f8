# frozen_string_literal: true

require "json"
require "net/http"
require "timeout"
require "headway/control/client"
require_relative "settings"

module Soak
  # What operators and monitors do to a cluster, all at once: it is scraped and looked at every second, its settings change,
  # recordings start and stop, and in a storm workers are told to go, or killed.
  class Attacks
    # Seconds in which Puma may put workers in others' place after it was asked to.
    RESTART = 45
    STORM = { "preload" => %i[kill restart more fewer], "phased" => %i[kill phased phased restart more fewer],
              "fork_worker" => %i[kill refork refork phased more fewer], "falcon" => %i[kill] }.freeze
    HEADERS = { "Sec-Fetch-Site" => "same-origin", "Content-Type" => "application/json" }.freeze
    ASIDE = [SystemCallError, IOError, Timeout::Error, Net::HTTPBadResponse, Net::ProtocolError].freeze

    def initialize(soaked, seed)
      @soaked = soaked
      @tally = soaked.tally
      @random = Random.new(seed)
      @number = 0
      @workers = 2
    end

    def start
      @threads = [run(4..12) { storm }]
      @threads.push(run(1..1) { scrape }, run(1..1) { look }, run(0.3..1.5) { set }, run(2..6) { record }, run(5..9) { capture },
                    run(8..16) { attach }, run(1..3) { abuse }) if @soaked.headway?
      self
    end

    def calm! = @calm = true

    def stop
      @over = true
      @threads.each do |thread|
        thread.join(100) or @tally.fail(:hung, "an attack waits for ever: #{thread.backtrace&.first(8)&.join("\n")}")
      end
    end

    private

    def run(pause)
      Thread.new do
        until @over
          sleep @random.rand(pause.begin.to_f..pause.end.to_f)
          yield
        end
      rescue StandardError => error
        @tally.fail(:attack, error.full_message(highlight: false))
      end
    end

    def storm
      return if @calm

      attack = STORM.fetch(@soaked.kind).sample(random: @random)
      @tally.count(:"attack_#{attack}")
      send(attack)
    end

    def kill
      pid = @soaked.workers.sample(random: @random) or return
      @tally.killed(pid)
      @soaked.server.signal(:KILL, pid)
      sleep 15 if @soaked.kind == "falcon" && !@over # which gives up where more than one in ten seconds fails
    end

    def restart = signal(:USR2, RESTART)
    def phased = signal(:USR1, RESTART)
    def refork = signal(:URG, RESTART)

    def more
      return if @workers >= 3

      @workers += 1
      signal(:TTIN, 5)
    end

    def fewer
      return if @workers <= 2

      @workers -= 1
      signal(:TTOU, 30)
    end

    def signal(name, seconds)
      @tally.restarting(seconds)
      @soaked.server.signal(name)
      sleep [seconds, 12].min unless @over
    end

    def scrape
      response = @soaked.get("/metrics")
      whole = response.code == "200" && response.body.include?("ruby_gvl_wait_seconds_count")
      whole ? @tally.count(:scraped) : @tally.fail(:metrics, "#{response.code} #{response.body[0, 300]}")
    rescue *ASIDE => error
      aside(:scrape, error)
    end

    def look
      response = @soaked.get("/headway/state")
      state = JSON.parse(response.body)
      response.code == "200" && state ? @tally.count(:looked) : @tally.fail(:web, "#{response.code} #{response.body[0, 300]}")
    rescue *ASIDE, JSON::ParserError => error
      aside(:look, error)
    end

    # A worker may be gone by then: that is no fault of Headway's, unless nothing was done to any.
    def aside(kind, error)
      explained = @tally.kill_explains?(@tally.now) || @tally.restart_explains?(@tally.now - 1)
      explained ? @tally.count(:"#{kind}_in_restart") : @tally.fail(kind, error.full_message(highlight: false, order: :top)[0, 600])
    end

    def clients
      directory = File.join(@soaked.directory, "control")
      Dir.glob("#{directory}/*.sock").map { |path| Headway::Control::Client.new(Integer(File.basename(path, ".sock")), path) }
    end

    def ask(kind)
      client = clients.sample(random: @random) or return
      yield client
      @tally.count(kind)
    rescue Headway::Control::ClientError => error
      @tally.count(:"#{kind}_refused")
      return unless error.message.include?("doesn't answer") && @soaked.workers.include?(client.pid)
      return if @tally.kill_explains?(@tally.now) || @tally.restart_explains?(@tally.now)

      @tally.fail(kind, error.message)
    end

    def set
      ask(:set) { |client| client.set(Settings.any(@random)) }
      ask(:stats, &:stats)
    end

    def record
      ask(:record) do |client|
        @number += 1
        if (recording = client.recorder)
          recording[:mode] == "flight" && @random.rand(2).zero? ? client.dump(file("dump")) : client.stop_recording
        elsif @random.rand(2).zero? then client.record(file: file("stream"), events: 50_000)
        else client.record(mode: "flight", events: 50_000, wait_threshold: 0.2)
        end
      end
      old = Dir.glob("#{@soaked.directory}/*.headway").sort_by { |path| File.mtime(path) }[0...-10]
      old&.each { |path| File.delete(path) }
    rescue Errno::ENOENT
      nil # two threads of ours delete
    end

    def file(kind) = File.join(@soaked.directory, "#{kind}-#{@number}.headway")

    def capture
      page = @soaked.get("/headway/")
      cookie = page["set-cookie"].to_s[/headway_web=[^;]+/] or return
      headers = HEADERS.merge("Cookie" => cookie, "X-Headway-Token" => cookie.split("=", 2).last)
      pid = @soaked.workers.sample(random: @random)
      taken = @soaked.post("/headway/captures", JSON.generate(pid:), headers)
      @tally.count(:"capture_#{taken.code}")
      name = taken.code == "201" && JSON.parse(taken.body)["name"] or return
      report = @soaked.get("/headway/captures/#{name}/report")
      @tally.count(:"report_#{report.code}")
    rescue *ASIDE => error
      aside(:capture, error)
    end

    # headway top and headway ctl, as a person has them.
    def attach
      pid = @soaked.workers.sample(random: @random) or return
      command = [["top", "--once", pid], ["top", "--json"], ["ctl", pid, "get"], ["ctl", pid, "get", "stats"]]
      command = command.sample(random: @random)
      command = [RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/headway", *command.map(&:to_s)]
      environment = { "HEADWAY_CONTROL_DIR" => File.join(@soaked.directory, "control") }
      IO.popen([environment, *command], err: %i[child out], in: File::NULL) { |io| io.read(200_000) }
      @tally.count($?.success? ? :attached : :attached_failed)
    end

    # Clients of the control socket that behave badly: nobody else may feel it.
    def abuse
      path = Dir.glob("#{File.join(@soaked.directory, "control")}/*.sock").sample(random: @random) or return
      Socket.unix(path) do |socket|
        socket.write(["{\"get\":", "{\"get\":\"stats\"}\n" * 20, "x" * 5_000, "\0\n{}\n", ""].sample(random: @random))
        sleep @random.rand(0.0..0.5)
      end
      @tally.count(:abused)
    rescue SystemCallError
      @tally.count(:abuse_refused)
    end
  end
end
