# frozen_string_literal: true

# A real Puma with an application whose requests are light, heavy or trivial; it ends when it is killed.
# Usage: puma.rb '{"threads": 10, "workers": 1, "light_waits": 5, "light_wait_ms": 4, "rounds_per_ms": 100, "light_ms": 5,
# "heavy_ms": 150, "setup": "…"}'; prints {"port": …} when it serves. setup: Ruby to be run in the application's place first.

require "json"
require "puma"
require "puma/configuration"
require "puma/launcher"

config = JSON.parse(ARGV.fetch(0))
rounds_per_ms = config.fetch("rounds_per_ms")

# Ruby as applications run it: it allocates, formats and joins.
compute = lambda do |ms|
  (ms * rounds_per_ms).round.times { Array.new(20) { |index| "item #{index}" }.join(",") }
end

# Waits as those for a database: the GVL is free meanwhile.
light = lambda do
  config.fetch("light_waits").times do
    sleep(config.fetch("light_wait_ms") / 1000.0)
    compute.call(config.fetch("light_ms") / config.fetch("light_waits").to_f)
  end
end

works = { "/light" => light, "/heavy" => -> { compute.call(config.fetch("heavy_ms")) }, "/trivial" => -> {} }

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
  puma.app(app)
end
launcher = Puma::Launcher.new(configuration, log_writer: Puma::LogWriter.null)
booted = launcher.events.respond_to?(:after_booted) ? :after_booted : :on_booted
launcher.events.public_send(booted) do
  puts JSON.generate(port: launcher.connected_ports.first)
  $stdout.flush
end
launcher.run
