# frozen_string_literal: true

require_relative "checks"
require "connection_pool"
require "timeout"

Connection = Struct.new(:number, :owner) do
  # Whether nobody else had it meanwhile.
  def use
    self.owner = Thread.current
    compute(2_000)
    sleep 0.0005
    owner.equal?(Thread.current)
  end
end

def pool(**options)
  number = 0
  ConnectionPool.new(size: 3, timeout: 30, **options) { Connection.new(number += 1) }
end

checks do
  check("each connection one thread's at a time", { true => 600 }) do
    pool = pool()
    tally(12) { Array.new(50) { pool.with(&:use) } }
  end
  check("none to be had", [{ "ConnectionPool::TimeoutError" => 40 }, 3, true]) do
    pool = pool()
    release = Queue.new
    taken = Queue.new
    holders = Array.new(3) { Thread.new { pool.with { taken << _1 && release.pop } } }
    3.times { taken.pop }
    said = tally(8) { Array.new(5) { outcome { pool.with(timeout: 0.02) { :had } } } }
    3.times { release << 1 }
    holders.each(&:join)
    [said, pool.available, pool.with(&:use)]
  end
  check("handed on as each wait goes on", { true => 200 }) do
    pool = pool(size: 1)
    tally(20) { Array.new(10) { pool.with { compute(500) > 0 } } }
  end
  check("none lost to timeouts and kills", 3) do
    pool = pool()
    in_threads(8) do |number|
      20.times do
        outcome { Timeout.timeout(0.01) { pool.with { compute_for(0.02) } } }
        Thread.new { pool.with { loop { compute(500) } } }.then { |thread| sleep(0.002) && thread.kill.join } if number.even?
      end
    end
    eventually { pool.available == 3 }
    pool.available
  end
  check("reloaded while it is used, every connection closed once", [0, { true => 400 }]) do
    made, closed = Queue.new, Queue.new
    pool = ConnectionPool.new(size: 3, timeout: 30) { Connection.new(1).tap { made << _1 } }
    reloading = Thread.new { 20.times { sleep(0.01) && pool.reload { |connection| closed << connection } } }
    used = tally(8) { Array.new(50) { pool.with(&:use) } }
    reloading.join
    pool.shutdown { |connection| closed << connection }
    [made.size - closed.size, used]
  end
  check("in forked children", [0] * 3) do
    pool = pool()
    pool.with(&:use)
    forked(3) { tally(4) { Array.new(5) { pool.with(&:use) } } == { true => 20 } }
  end
end
