# frozen_string_literal: true

# One thread requests a page again and again while others compute: how many requests does it still get through?
# Usage: fairness.rb '{"port": …, "seconds": 5, "cpu_threads": 4, "priority": 0}'

require "json"
require "net/http"

# Generous limits: a thread that waits seconds for the GVL must be seen as slow, not as a failure.
LIMITS = { open_timeout: 60, read_timeout: 60, write_timeout: 60 }.freeze

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def request(port)
  Net::HTTP.start("127.0.0.1", port, nil, **LIMITS) { |http| http.get("/") }
end

config = JSON.parse(ARGV.fetch(0))
port = config.fetch("port")
counts = Array.new(config.fetch("cpu_threads"), 0)
request(port) # loads what is loaded at first use

# The thread whose waits are asked for starts before its competitors, and starts them inside the time measured.
requester = Thread.new do
  Thread.current.name = "requests"
  start = now
  requests = 0
  counts.each_index do |index|
    Thread.new do
      Thread.current.name = "computes"
      Thread.current.priority = config.fetch("priority")
      number = 0
      while true
        number += 1
        number = 0 if number > 1_000_000_000_000
        counts[index] += 1
      end
    end
  end
  while now - start < config.fetch("seconds")
    request(port)
    requests += 1
  end
  elapsed = now - start
  { requests_per_s: requests / elapsed, cpu_iterations_per_s: counts.sum / elapsed }
end

figures = requester.value
if defined?(Headway.started?) && Headway.started?
  policy = Headway.policy
  wait = Headway.stats[:threads].find { |thread| thread[:name] == "requests" }&.fetch(:wait)
  figures.update(%i[p50 p99 max].to_h { |key| [:"wait_#{key}_us", wait[key] * 1e6] }) if wait&.fetch(:count)&.positive?
end
puts JSON.generate(figures:, policy:)
