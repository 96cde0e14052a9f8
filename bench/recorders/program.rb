# frozen_string_literal: true

# The program that is watched, in a process of its own. Usage: program.rb ARM WORKLOAD SECONDS; prints JSON.

require "json"
require "tmpdir"
require_relative "arms"
require_relative "../../lib/headway/bench/programs/heap"

# Two threads hand the GVL to each other and do nothing else: the dearest that recording can be.
module Handovers
  def self.run(seconds)
    there, back = Queue.new, Queue.new
    partner = Thread.new { back << true while there.pop }
    rounds = 0
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
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
end

# Eight threads that each compute for some 0.1 ms and sleep for as long: somebody always waits for the GVL.
module Saturated
  def self.run(seconds)
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    threads = Array.new(8) do
      Thread.new do
        rounds = 0
        while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
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
end

# Puma with eight threads and as much as they can do; each request computes for some 0.1 ms and waits for 0.5 ms. A round is a request.
module PumaUnderLoad
  CONNECTIONS = 16

  def self.run(seconds)
    require "puma"
    require "puma/server"
    require "rbconfig"
    server = Puma::Server.new(method(:answer), nil, min_threads: 8, max_threads: 8, log_writer: Puma::LogWriter.null)
    port = server.add_tcp_listener("127.0.0.1", 0).addr[1]
    server.run
    load = [RbConfig.ruby, "--disable=gems", File.expand_path("requests.rb", __dir__), port, CONNECTIONS, seconds].map(&:to_s)
    rounds = IO.popen({ "RUBYOPT" => nil }, load, &:read).to_i
    raise "the requests failed" unless rounds.positive?

    rounds
  ensure
    server&.stop(true)
  end

  def self.answer(_env)
    number = 0
    number += 1 while number < 4000
    sleep 0.0005
    [200, { "content-type" => "text/plain" }, ["done\n"]]
  end
end

arm = Arms::ALL.fetch(ARGV[0])
workload = { "handovers" => Handovers, "saturated" => Saturated, "puma" => PumaUnderLoad }.fetch(ARGV[1])
Dir.mktmpdir do |directory|
  path = File.join(directory, "trace")
  arm.start(path)
  wall, cpu = [Process::CLOCK_MONOTONIC, Process::CLOCK_PROCESS_CPUTIME_ID].map { |clock| Process.clock_gettime(clock) }
  rounds = workload.run(Float(ARGV[2]))
  cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - cpu
  wall = Process.clock_gettime(Process::CLOCK_MONOTONIC) - wall
  written = arm.stop(path)
  puts JSON.generate(version: arm.version, rounds_per_s: rounds / wall, cpu_us_per_round: cpu / rounds * 1e6,
                     events_per_round: written && (written.events.to_f / rounds),
                     bytes_per_event: written && (written.bytes.to_f / written.events))
end
