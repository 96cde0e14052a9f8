# frozen_string_literal: true

require_relative "checks"
require "drb/drb"
require "request_store"
require "parallel"
require "timeout"

# What is called from elsewhere, each call in a thread of its own.
class Front
  def double(number) = compute(300) && number * 2
  def each_to(number) = number.times { |each| yield each }
  def fail(text) = raise(ArgumentError, text)
  def wait(seconds) = sleep(seconds)
end

DRb.start_service("druby://127.0.0.1:0", Front.new)
uri = DRb.uri

def stored(value)
  RequestStore.begin!
  RequestStore.store[:value] = value
  compute_for(0.002)
  sleep 0.0005
  RequestStore.store[:value] == value
ensure
  RequestStore.end!
  RequestStore.clear!
end

checks do
  check("drb: calls", [*0...200].map { |number| number * 2 }) do
    front = DRbObject.new_with_uri(uri)
    in_threads(10) { |thread| Array.new(20) { |number| front.double(thread * 20 + number) } }.flatten.sort
  end
  check("drb: from processes", [0] * 3) do
    forked(3) do
      DRb.start_service
      front = DRbObject.new_with_uri(uri)
      in_threads(4) { |thread| Array.new(10) { |number| front.double(number + thread) == (number + thread) * 2 }.all? }.all?
    end
  end
  check("drb: blocks called back, errors", [[*0...20], "ArgumentError"]) do
    front = DRbObject.new_with_uri(uri)
    [[].tap { |list| front.each_to(20) { list << _1 } }, outcome { front.fail("no") }]
  end
  check("drb: late", { "Timeout::Error" => 16 }) do
    tally(8) { Array.new(2) { outcome { Timeout.timeout(0.1) { DRbObject.new_with_uri(uri).wait(1) } } } }
  end
  check("request_store: each thread's own", { true => 400 }) { tally(10) { |thread| Array.new(40) { |number| stored([thread, number]) } } }
  check("parallel: threads, in order", [*1..200]) { Parallel.map(0...200, in_threads: 8) { compute(200) && _1 + 1 } }
  check("parallel: processes, in order", [*1..200]) { Parallel.map(0...200, in_processes: 4) { compute(200) && _1 + 1 } }
  check("parallel: threads in processes", [[0, 1, 2, 3]] * 6) do
    Parallel.map(0...6, in_processes: 3) { in_threads(4) { |each| compute && each } }
  end
  check("parallel: an error ends the others", ["ArgumentError", true]) do
    began = now
    said = outcome do
      Parallel.each(0...8, in_threads: 8) { |each| each == 3 ? raise(ArgumentError, "no") : (sleep(0.05) && compute) }
    end
    [said, now - began < 30]
  end
  check("parallel: stopped", nil) { Parallel.each(0...50, in_threads: 4) { |each| raise Parallel::Break if each == 10 } }
  check("parallel: a process that dies", "Parallel::DeadWorker") do
    outcome { Parallel.map(0...4, in_processes: 2) { |each| each == 2 ? exit!(1) : compute } }
  end
end
