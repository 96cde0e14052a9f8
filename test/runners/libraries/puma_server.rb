# frozen_string_literal: true

require "json"
require "net/http"
require "tmpdir"

# A real Puma with `plugin :headway`, in a process that `headway run` has nothing to do with, scheduled as the one that asks it.
class PumaServer
  LIB = File.expand_path("../../../lib", __dir__)
  PLUGIN = %(plugin :headway if ENV["HEADWAY"] != "0"\n)
  # It doesn't outlive who started it, however that ends.
  LIFELINE = "Thread.new { $stdin.read; Process.kill(:KILL, 0) }\n"

  # @param rackup [String] config.ru's text
  # @param configuration [String] config/puma.rb's, as far as it is this server's own
  def self.open(rackup, configuration, **env)
    Dir.mktmpdir("headway-smoke") do |directory|
      puma = new(directory, rackup, configuration, env)
      yield puma
    ensure
      puma&.stop
    end
  end

  def initialize(directory, rackup, configuration, env)
    files = %w[config.ru puma.rb log].map { |name| File.join(directory, name) }
    @rackup, @configuration, @log = files
    File.write(@rackup, rackup)
    File.write(@configuration, %(bind "tcp://127.0.0.1:0"\n#{PLUGIN}#{LIFELINE}#{configuration}))
    env = { "RUBYOPT" => "-rbundler/setup", "HEADWAY_RUN_PID" => nil, "HEADWAY" => defined?(Headway) ? nil : "0", **env }
    theirs, @lifeline = IO.pipe
    @pid = Process.spawn(env, RbConfig.ruby, "-I#{LIB}", Gem.bin_path("puma", "puma"), "-C", @configuration, @rackup,
                         out: @log, err: %i[child out], in: theirs, pgroup: true)
    theirs.close
    @port = eventually(60) { output[%r{Listening on http://127.0.0.1:(\d+)}, 1] } or raise output
  end

  def output = File.exist?(@log) ? File.read(@log).scrub : ""

  def signal(name) = Process.kill(name, @pid)

  # @return [Array(Integer, String)] status and body; a request is never made twice
  def get(path) = keep { |get| get.call(path) }

  # One connection for several requests.
  # @yieldparam get [#call]
  def keep
    Net::HTTP.start("127.0.0.1", @port, open_timeout: 30, read_timeout: 55, max_retries: 0) do |http|
      yield ->(path) { http.get(path).then { |answer| [answer.code.to_i, answer.body] } }
    end
  end

  # With its workers.
  def stop
    Process.kill(:KILL, -@pid)
    Process.wait(@pid)
  end
end
