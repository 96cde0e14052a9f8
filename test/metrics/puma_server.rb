# frozen_string_literal: true

require "harness/time_limit"
require "servers/server_process"

module Metrics
  # A real Puma on loopback, in a process of its own.
  class PumaServer
    READY = %r{Listening on http://127\.0\.0\.1:(\d+)}

    # @param rackup [String] the application, as in config.ru
    # @param config [String] lines of config/puma.rb
    def self.run(rackup, config: "")
      Dir.mktmpdir("headway-puma") do |directory|
        server = new(directory, rackup, config)
        yield server
      ensure
        server&.stop
      end
    end

    attr_reader :port

    def initialize(directory, rackup, config)
      File.write("#{directory}/config.ru", rackup)
      File.write("#{directory}/puma.rb", "bind 'tcp://127.0.0.1:0'\nlog_requests false\n#{config}")
      @process = Harness::ServerProcess.new(Gem.bin_path("puma", "puma"), "-C", "puma.rb", "config.ru", directory: directory)
      # In cluster mode workers come later; the socket takes connections from here on.
      @port = Integer(@process.await_output(READY)[READY, 1])
    end

    # @return [Net::HTTPResponse]
    def get(path) = Net::HTTP.get_response("127.0.0.1", path, @port)

    def stop = @process.stop
  end
end
