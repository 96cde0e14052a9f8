# frozen_string_literal: true

# One thread requests a page again and again while others compute: how many requests does it still get through?
# Usage: fairness.rb '{"port": …, "seconds": 5, "cpu_threads": 4, "priority": 0, "apart": false}'; apart: each of those that compute is
# a process instead of a thread.

require "json"
require "net/http"

# Generous limits: a thread that waits seconds for the GVL must be seen as slow, not as a failure.
LIMITS = { open_timeout: 60, read_timeout: 60, write_timeout: 60 }.freeze

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def request(port)
  Net::HTTP.start("127.0.0.1", port, nil, **LIMITS) { |http| http.get("/") }
end

# Computes for ever, in a thread.
class Computing
  attr_reader :count

  def initialize(priority)
    @count = 0
    Thread.new do
      Thread.current.name = "computes"
      Thread.current.priority = priority
      run
    end
  end

  private

  def run
    number = 0
    while true
      number += 1
      number = 0 if number > 1_000_000_000_000
      @count += 1
    end
  end
end

# The same in a process, which ends when our end of a pipe does: when its count is asked for, or with us.
class ComputingApart < Computing
  THEIRS, OURS = IO.pipe

  def initialize(_priority)
    @count = 0
    @answer, writer = IO.pipe
    @pid = fork do
      OURS.close
      Thread.new do
        THEIRS.read
        writer.write(@count)
        exit!(true)
      end
      run
    end
    writer.close
  end

  def count
    OURS.close
    Integer(@answer.read).tap { Process.wait(@pid) }
  end
end

config = JSON.parse(ARGV.fetch(0))
port = config.fetch("port")
rivals = []
request(port) # loads what is loaded at first use

# The thread whose waits are asked for starts before its competitors, and starts them inside the time measured.
requester = Thread.new do
  Thread.current.name = "requests"
  start = now
  requests = 0
  kind = config["apart"] ? ComputingApart : Computing
  config.fetch("cpu_threads").times { rivals << kind.new(config.fetch("priority")) }
  while now - start < config.fetch("seconds")
    request(port)
    requests += 1
  end
  elapsed = now - start
  { requests_per_s: requests / elapsed, cpu_iterations_per_s: rivals.sum(&:count) / elapsed }
end

figures = requester.value
if defined?(Headway.started?) && Headway.started?
  policy = Headway.policy
  wait = Headway.stats[:threads].find { |thread| thread[:name] == "requests" }&.fetch(:wait)
  figures.update(%i[p50 p99 max].to_h { |key| [:"wait_#{key}_us", wait[key] * 1e6] }) if wait&.fetch(:count)&.positive?
end
puts JSON.generate(figures:, policy:)
