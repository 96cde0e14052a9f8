# frozen_string_literal: true

require_relative "checks"
require "timeout"
require "net/http"
require "socket"
require "monitor"

class Inner < StandardError; end
class Outer < StandardError; end

def late(seconds = 0.02, *error, &block) = outcome { Timeout.timeout(seconds, *error) { block.call && :in_time } }

# Answers after as long as it is asked to.
def server
  server = TCPServer.new("127.0.0.1", 0)
  Thread.new do
    loop do
      Thread.new(server.accept) do |client|
        seconds = client.gets.to_s[/\d+\.\d+/].to_f
        nil until ["\r\n", nil].include?(client.gets)
        sleep seconds
        client.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        client.close
      rescue SystemCallError, IOError
        nil # who asked has gone
      end
    end
  end
  server.addr[1]
end

checks do
  check("computing too long", { "Timeout::Error" => 400 }) { tally(8) { Array.new(50) { late { loop { compute(500) } } } } }
  check("in time", { :in_time => 4000 }) { tally(8) { Array.new(500) { late(30) { compute(50) } } } }
  check("about as long as there is", 400) do
    tally(8) { Array.new(50) { late(0.005) { compute_for(0.005) || true } } }.slice("Timeout::Error", :in_time).values.sum
  end
  check("the inner one first", { "Inner" => 160 }) do
    tally(8) { Array.new(20) { late(30, Outer) { Timeout.timeout(0.01, Inner) { loop { compute(500) } } } } }
  end
  check("the outer one first", { "Outer" => 160 }) do
    tally(8) { Array.new(20) { late(0.01, Outer) { Timeout.timeout(30, Inner) { loop { compute(500) } } } } }
  end
  check("both at once: one of them, and neither later", [{ true => 160 }, nil]) do
    [tally(8) { Array.new(20) { %w[Inner Outer].include?(late(0.01, Outer) { Timeout.timeout(0.01, Inner) { loop { compute(500) } } }) } },
     sleep(0.1) && nil]
  end
  check("ensures run to their end, if they were begun", [0, 100]) do
    in_threads(8) do
      Array.new(10) do
        done = 0
        said = outcome do
          Timeout.timeout(0.01) do
            loop { compute(500) }
          ensure
            100.times { compute(50) && done += 1 }
          end
        end
        said == "Timeout::Error" ? done : said
      end
    end.flatten.uniq.push(0, 100).uniq.sort
  end
  mutex, monitor = Mutex.new, Monitor.new
  check("a Mutex in vain", [{ "Timeout::Error" => 80 }, false]) do
    holder = Thread.new { mutex.synchronize { compute_for(1.5) || sleep } }
    sleep 0.05 until mutex.locked?
    said = tally(8) { Array.new(10) { late { mutex.lock } } }
    holder.kill.join
    [said, mutex.locked?]
  end
  check("a Monitor and its condition in vain", [{ "Timeout::Error" => 80 }, 1]) do
    condition = monitor.new_cond
    said = tally(8) { Array.new(10) { late { monitor.synchronize { condition.wait } } } }
    [said, monitor.synchronize { 1 }]
  end
  check("a ConditionVariable's own timeout", { true => 400 }) do
    condition = ConditionVariable.new
    tally(8) { Array.new(50) { mutex.synchronize { condition.wait(mutex, 0.005).nil? && mutex.owned? } } }
  end
  check("a Queue's own timeout", { nil => 400 }) { queue = Queue.new and tally(8) { Array.new(50) { queue.pop(timeout: 0.005) } } }
  check("a full queue's", { nil => 400 }) { queue = SizedQueue.new(1) << 1 and tally(8) { Array.new(50) { queue.push(1, timeout: 0.005) } } }
  check("a queue, nothing lost between items and timeouts", [*0...2000]) do
    queue = Queue.new
    taken = Array.new(6) do
      Thread.new do
        items = []
        while (item = queue.pop(timeout: 20)) != :end
          items << item
          compute(50)
        end
        items
      end
    end
    2000.times { |number| queue << number; sleep 0.001 if number % 50 == 0 }
    6.times { queue << :end }
    taken.flat_map(&:value).sort
  end
  port = server
  get = lambda do |seconds, **options|
    Net::HTTP.start("127.0.0.1", port, open_timeout: 20, max_retries: 0, **options) { |http| http.get(format("/%.2f", seconds)).body }
  end
  check("Net::HTTP in time", { "ok" => 160 }) { tally(8) { Array.new(20) { outcome { get.call(0.01, read_timeout: 30) } } } }
  check("Net::HTTP late by its own", { "Net::ReadTimeout" => 40 }) { tally(8) { Array.new(5) { outcome { get.call(20, read_timeout: 0.05) } } } }
  check("Net::HTTP late by Timeout", { "Timeout::Error" => 40 }) { tally(8) { Array.new(5) { late(0.05) { get.call(20, read_timeout: 30) } } } }
  check("Net::HTTP late by an inner one, in time for the outer", { "Net::ReadTimeout" => 40 }) do
    tally(8) { Array.new(5) { late(30, Outer) { get.call(20, read_timeout: 0.05) } } }
  end
  check("in forked children", [0] * 4) do
    forked(4) { late { loop { compute(500) } } == "Timeout::Error" }
  end
  check("threads killed in a timeout", 40) do
    in_threads(40) do
      thread = Thread.new { late(30) { loop { compute(500) } } }
      sleep 0.02
      thread.kill.join(20)
    end.compact.size
  end
  check("a timeout of its own thread afterwards", :in_time) { late(30) { compute } }
end
puts "timeout #{Timeout::VERSION}"
