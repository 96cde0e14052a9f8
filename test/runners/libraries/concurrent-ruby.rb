# frozen_string_literal: true

require_relative "checks"
require "concurrent"

def pool(**options) = Concurrent::ThreadPoolExecutor.new(min_threads: 2, max_threads: 4, **options)

# What a pool whose queue is full says to each of 200 tasks, and how many were done.
def overrun(policy)
  pool = pool(max_queue: 5, fallback_policy: policy)
  done = Concurrent::AtomicFixnum.new
  told = Array.new(200) { outcome { pool.post { compute && done.increment } } }
  pool.shutdown
  ended = pool.wait_for_termination(30)
  accepted = told.count(true)
  said = told.uniq - [true]
  [ended, done.value == (policy == :caller_runs ? 200 : accepted), said]
end

def in_barrier(count)
  barrier = Concurrent::CyclicBarrier.new(count)
  in_threads(count) { Array.new(20) { compute(500) && barrier.wait(30) }.all? }.count(true)
end

checks do
  check("promises", (1..3000).sum { |number| number + 1 }) do
    Concurrent::Promises.zip(*Array.new(3000) { |number| Concurrent::Promises.future(number + 1) { |value| value }.then { _1 + 1 } })
                        .value!(50).sum
  end
  check("promises that fail", { "ArgumentError" => 500, "rescued" => 500 }) do
    Array.new(1000) do |number|
      future = Concurrent::Promises.future { compute(100) && raise(ArgumentError, "no") }
      number.even? ? future.rescue { "rescued" } : future
    end.map { |future| outcome { future.value!(50) } }.tally
  end
  check("chains across pools", [*1..300]) do
    chains = Array.new(300) do |number|
      Concurrent::Promises.future_on(:fast, number) { _1 }.then_on(:io) { |value| sleep(0.001) && value || value }.then { _1 + 1 }
    end
    Concurrent::Promises.zip(*chains).value!(50)
  end
  check("any of", :first) do
    Concurrent::Promises.any(Concurrent::Promises.future { :first }, Concurrent::Promises.resolvable_future).value!(30)
  end
  check("futures and agents", 1000) do
    agent = Concurrent::Agent.new(0)
    1000.times { agent.send { |value| value + 1 } }
    agent.await_for(50) && agent.value
  end
  check("a full queue aborts", [true, true, ["Concurrent::RejectedExecutionError"]]) { overrun(:abort) }
  check("a full queue discards", [true, true, [false]]) { overrun(:discard) }
  check("a full queue has the caller run it", [true, true]) { overrun(:caller_runs).first(2) }
  check("a pool killed amid computing", [true, true]) do
    pool = pool(max_queue: 0)
    cleaned = Concurrent::AtomicFixnum.new
    started = Concurrent::CountDownLatch.new(4)
    20.times do
      pool.post do
        started.count_down
        loop { compute }
      ensure
        cleaned.increment
      end
    end
    started.wait(30)
    pool.kill
    [pool.wait_for_termination(30), eventually { cleaned.value == 4 }]
  end
  check("a timer task", [true, true, false]) do
    executions = Queue.new
    task = Concurrent::TimerTask.new(execution_interval: 0.02) { executions << now }
    task.execute
    often = eventually { executions.size > 10 }
    task.shutdown
    ended = task.wait_for_termination(10)
    sleep 0.2
    before = executions.size
    sleep 0.2
    [often, ended, executions.size > before]
  end
  check("scheduled tasks, each once, none early", [[*0...40], true]) do
    done = Queue.new
    from = now
    tasks = Array.new(40) do |number|
      delay = 0.1 + number * 0.03
      Concurrent::ScheduledTask.execute(delay) { done << [number, now - from >= delay] }
    end
    tasks.each { |task| task.wait(30) }
    numbers, late = Array.new(done.size) { done.pop }.sort.transpose
    [numbers, late.all?]
  end
  check("a semaphore", [true, 0]) do
    semaphore = Concurrent::Semaphore.new(3)
    inside = Concurrent::AtomicFixnum.new
    most = in_threads(12) do
      Array.new(20) do
        semaphore.acquire { inside.increment.tap { compute(2_000) && sleep(0.0005) && inside.decrement } }
      end.max
    end.max
    [most <= 3, inside.value]
  end
  check("a semaphore that is tried for in vain", [false] * 8) do
    semaphore = Concurrent::Semaphore.new(0)
    in_threads(8) { semaphore.try_acquire(1, 0.05) }
  end
  check("latches and barriers", [[true] * 10, 10]) do
    10.times.map do
      latch = Concurrent::CountDownLatch.new(20)
      20.times { Thread.new { compute(500) && latch.count_down } }
      latch.wait(30)
    end.then { |waited| [waited, in_barrier(10)] }
  end
  check("a map, each key computed once", [50, 50]) do
    map = Concurrent::Map.new
    computed = Concurrent::AtomicFixnum.new
    in_threads(10) { 50.times { |key| map.compute_if_absent(key) { compute(200) && computed.increment } } }
    [map.size, computed.value]
  end
  check("locks", [4000, 4000]) do
    count = { reentrant: 0, atom: Concurrent::Atom.new(0) }
    lock = Concurrent::ReentrantReadWriteLock.new
    in_threads(8) do
      500.times do
        lock.with_write_lock { lock.with_read_lock { count[:reentrant] += 1 } }
        nil until count[:atom].swap(1) { |value, add| value + add }
      end
    end
    [count[:reentrant], count[:atom].value]
  end
  check("an actor-like async object, timers, a delay", [200, 1]) do
    once = Concurrent::AtomicFixnum.new
    delay = Concurrent::Delay.new { compute && once.increment }
    in_threads(8) { delay.value }
    counter = Class.new { include Concurrent::Async; def initialize = @count = 0; def add = @count += 1 }.new
    last = Array.new(200) { counter.async.add }.last
    [last.value(30), once.value]
  end
end
