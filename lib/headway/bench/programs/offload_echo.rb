# frozen_string_literal: true

# An echo server and its clients in one event loop, over TCP: how much CPU time does a request cost the loop, and how many does it
# serve? In turns within one process: the arm's loop, Async's own, and the arm's again while Headway's scheduler of threads is on.
# Usage: offload_echo.rb '{"arm": "headway", "rounds": 15}'

require "json"
require "socket"
require_relative "../../../headway"
require "async"

CONNECTIONS = 50
REQUESTS = 40 # of each
MESSAGE = ("x" * 63 << "\n").freeze

config = JSON.parse(ARGV.fetch(0))
ARM = config.fetch("arm")

def make_scheduler(arm)
  case arm
  when "async" then Async::Scheduler.new
  when "async_headway" then Async::Scheduler.new(worker_pool: Headway::OffloadPool.new)
  when "headway" then Headway::FiberScheduler.new
  else Headway::FiberScheduler.new(pool: nil)
  end
end

def serve(server)
  CONNECTIONS.times do
    peer = server.accept
    Fiber.schedule do
      while (line = peer.gets)
        peer.write(line)
      end
      peer.close
    end
  end
end

def ask(port)
  socket = TCPSocket.new("127.0.0.1", port)
  REQUESTS.times { (socket.write(MESSAGE) && socket.gets == MESSAGE) || raise("another echo") }
  socket.close
end

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def cpu_s = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

# @return [Array(Float, Float)] requests a second, and microseconds of the loop's CPU time for each
def measure(arm)
  Thread.new do
    server = TCPServer.new("127.0.0.1", 0)
    scheduler = make_scheduler(arm)
    Fiber.set_scheduler(scheduler)
    start = now
    cpu_start = cpu_s
    Fiber.schedule { serve(server) }
    CONNECTIONS.times { Fiber.schedule { ask(server.addr[1]) } }
    scheduler.run
    count = CONNECTIONS * REQUESTS
    [count / (now - start), (cpu_s - cpu_start) / count * 1e6]
  ensure
    server.close
  end.value
end

def measure_with_scheduler(arm)
  Headway.start(policy: :fair)
  measure(arm)
ensure
  Headway.stop
end

# What the three are measured as, in another order each time.
def round(number)
  order = [[:arm, -> { measure(ARM) }], [:async, -> { measure("async") }], [:scheduled, -> { measure_with_scheduler(ARM) }]]
  order.rotate(number).to_h { |name, measurement| [name, measurement.call] }
end

def median(values) = values.sort[values.size / 2]

round(0) # what is loaded is loaded
rounds = Array.new(config.fetch("rounds")) { |number| round(number) }
figures = {
  requests_per_s: median(rounds.map { _1[:arm][0] }),
  cpu_us_per_request: median(rounds.map { _1[:arm][1] }),
  ratio_to_async: median(rounds.map { _1[:async][1] / _1[:arm][1] }),
  ratio_with_scheduler: median(rounds.map { _1[:arm][1] / _1[:scheduled][1] })
}
puts JSON.generate(figures:, policy: nil)
