# frozen_string_literal: true

require "harness/time_limit"
require "net/http"
require "tmpdir"

module Metrics
  # A real Puma on loopback, in a process of its own.
  class PumaServer
    READY = /Listening on http:\/\/127\.0\.0\.1:(\d+)/

    # @param rackup [String] the application, as in config.ru
    # @param config [String] lines of config/puma.rb
    def self.run(rackup, config: "")
      server = new(rackup, config)
      yield server
    ensure
      server&.stop
    end

    attr_reader :port

    def initialize(rackup, config)
      @directory = Dir.mktmpdir("headway-puma")
      write("config.ru", rackup)
      write("puma.rb", "bind 'tcp://127.0.0.1:0'\nlog_requests false\n#{config}")
      @output, output = IO.pipe
      lib = File.expand_path("../../lib", __dir__)
      @pid = Process.spawn(RbConfig.ruby, "-I", lib, Gem.bin_path("puma", "puma"), "-C", "puma.rb", "config.ru",
                           chdir: @directory, out: output, err: %i[child out], in: File::NULL)
      output.close
      @port = await_port
      @reader = Thread.new { nil while @output.gets }
    end

    # @return [Net::HTTPResponse]
    def get(path) = Net::HTTP.get_response("127.0.0.1", path, @port)

    def stop
      Process.kill(:TERM, @pid)
      Process.wait(@pid)
    ensure
      @reader&.join
      @output.close
      FileUtils.rm_rf(@directory)
    end

    private

    def write(name, text) = File.write(File.join(@directory, name), text)

    # In cluster mode workers come later; the socket takes connections from here on.
    def await_port
      said = +""
      loop do
        @output.wait_readable(30 * Harness::TimeLimit.seconds_scale) or raise "Puma said nothing:\n#{said}"
        line = @output.gets or raise "Puma ended:\n#{said}"
        said << line
        return Integer($1) if line =~ READY
      end
    end
  end
end
