# frozen_string_literal: true

# A real Puma with an application whose requests are light, heavy or trivial; it ends when it is killed.
# Usage: puma.rb '{"threads": 10, "workers": 1, "light_waits": 5, "light_wait_ms": 4, "rounds_per_ms": 100, "light_ms": 5,
# "heavy_ms": 150, "work_us": 0, "setup": "…"}'; prints {"port": …} when it serves. setup: Ruby to be run in the application's place first.

require "json"
require "puma"
require "puma/configuration"
require "puma/launcher"
require_relative "work"

config = JSON.parse(ARGV.fetch(0))
work = Work.new(config)
works = { "/light" => -> { work.light }, "/heavy" => -> { work.heavy }, "/trivial" => -> { work.trivial } }

# What the benchmark asks a worker about itself.
policy = -> { defined?(Headway.started?) && Headway.started? ? Headway.policy : nil }
questions = { "/policy" => policy, "/cpu" => -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) } }

app = lambda do |env|
  path = env["PATH_INFO"]
  works[path]&.call
  [200, { "content-type" => "text/plain" }, [questions.key?(path) ? questions[path].call.to_s : "ok\n"]]
end
app = eval(config["setup"]).call(app) if config["setup"] # rubocop:disable Security/Eval

configuration = Puma::Configuration.new do |puma|
  puma.bind("tcp://127.0.0.1:0")
  puma.threads(config.fetch("threads"), config.fetch("threads"))
  puma.workers(config.fetch("workers") == 1 ? 0 : config.fetch("workers"))
  puma.plugin(:headway) if defined?(Headway.started?) # as users have it
  puma.app(app)
end
launcher = Puma::Launcher.new(configuration, log_writer: Puma::LogWriter.null)
booted = launcher.events.respond_to?(:after_booted) ? :after_booted : :on_booted
launcher.events.public_send(booted) do
  puts JSON.generate(port: launcher.connected_ports.first)
  $stdout.flush
end
launcher.run
