# frozen_string_literal: true

# The program that is watched, in a process of its own. Usage: program.rb ARM WORKLOAD. Says when it has started, reads the seconds of a
# turn from each line of its input, works for so long and prints what it did, as JSON; at the end of the input, what the recording has.

require "json"
require "tmpdir"
require_relative "arms"
require_relative "../../lib/headway/bench/programs/heap"

# Two threads hand the GVL to each other and do nothing else: the dearest that recording can be.
class Handovers
  def run(seconds)
    there, back = Queue.new, Queue.new
    partner = Thread.new { back << true while there.pop }
    rounds = 0
    finish = now + seconds
    while now < finish
      100.times do
        there << true
        back.pop
      end
      rounds += 100
    end
    there << nil
    partner.join
    rounds
  end

  def close = nil
end

# Eight threads that each compute for some 0.1 ms and sleep for as long: somebody always waits for the GVL.
class Saturated
  def run(seconds)
    finish = now + seconds
    threads = Array.new(8) do
      Thread.new do
        rounds = 0
        while now < finish
          number = 0
          number += 1 while number < 4000
          sleep 0.0001
          rounds += 1
        end
        rounds
      end
    end
    threads.sum(&:value)
  end

  def close = nil
end

# Puma with eight threads and as much as they can do; each request computes for some 0.1 ms and waits for 0.5 ms. A round is a request.
class PumaUnderLoad
  CONNECTIONS = 16

  def initialize
    require "puma"
    require "puma/server"
    require "rbconfig"
    @server = Puma::Server.new(method(:answer), nil, min_threads: 8, max_threads: 8, log_writer: Puma::LogWriter.null)
    @port = @server.add_tcp_listener("127.0.0.1", 0).addr[1]
    @server.run
  end

  def run(seconds)
    load = [RbConfig.ruby, "--disable=gems", File.expand_path("requests.rb", __dir__), @port, CONNECTIONS, seconds].map(&:to_s)
    rounds = IO.popen({ "RUBYOPT" => nil }, load, &:read).to_i
    raise "the requests failed" unless rounds.positive?

    rounds
  end

  def close = @server.stop(true)

  private

  def answer(_env)
    number = 0
    number += 1 while number < 4000
    sleep 0.0005
    [200, { "content-type" => "text/plain" }, ["done\n"]]
  end
end

def now(clock = Process::CLOCK_MONOTONIC) = Process.clock_gettime(clock)

def tell(facts) = $stdout.puts(JSON.generate(facts))

$stdout.sync = true
arm = Arms::ALL.fetch(ARGV[0])
workload = { "handovers" => Handovers, "saturated" => Saturated, "puma" => PumaUnderLoad }.fetch(ARGV[1])
Dir.mktmpdir do |directory|
  path = File.join(directory, "trace")
  arm.start(path)
  work = workload.new
  tell(started: true)
  while (seconds = $stdin.gets)
    cpu = now(Process::CLOCK_PROCESS_CPUTIME_ID)
    rounds = work.run(Float(seconds))
    tell(rounds:, cpu_s: now(Process::CLOCK_PROCESS_CPUTIME_ID) - cpu)
  end
  work.close
  written = arm.stop(path)
  tell(version: arm.version, events: written&.events, bytes: written&.bytes)
end
