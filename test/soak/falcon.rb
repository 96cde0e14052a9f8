# frozen_string_literal: true

require_relative "puma"

module Soak
  # Falcon with two processes, Headway in each of them and its pool under Async's event loop; some of them are killed.
  class Falcon < Puma
    # Falcon says itself what failed; its timeouts strike only where a fiber waits, as Async's do; and only Puma takes a callable
    # body so.
    LEFT_OUT = %w[fails throws breaks callable timeout children].freeze
    RACKUP = <<~RUBY
      if ENV["SOAK_HEADWAY"] == "1"
        require "headway"
        Headway.start(policy: :fair)
        require "headway/async"
        Headway::Recorder.start(mode: :flight, wait_threshold: 0.3, events: 100_000)
      end
      #{Puma::RACKUP}
    RUBY

    def initialize(seconds, options, out: $stdout)
      super("falcon", seconds, options, out:)
    end

    def workers
      Stress::Autopsy.group(@server.pid).select do |pid|
        File.read("/proc/#{pid}/stat").rpartition(") ").last.split[1].to_i == @server.pid
      end
    rescue SystemCallError
      []
    end

    def control(_command) = nil

    private

    def left_out = super + LEFT_OUT
    def name = "falcon"

    def start
      @port = Harness::ServerProcess.free_port
      database = File.join(@directory, "numbers.sqlite")
      fill(database)
      File.write(File.join(@directory, "config.ru"), RACKUP)
      command = [Gem.bin_path("falcon", "falcon"), "serve", "--bind", "http://127.0.0.1:#{@port}", "--count", "2", "--config",
                 "config.ru"]
      @server = Server.new(*command, directory: @directory, env: environment(database))
      @server.await("an answer") { get("/sql", "X-Number" => "1", "X-Size" => "9").code == "200" rescue nil }
    end

    def finish
      @server.signal(:INT)
      fault = @server.await_end
      @tally.fail(:end, fault) if fault
    end
  end
end
