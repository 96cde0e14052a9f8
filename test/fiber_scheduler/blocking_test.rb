# frozen_string_literal: true

require "fiber_scheduler/scheduled"
require "timeout"

# Waits for the time, for locks and for other threads.
class FiberSchedulerBlockingTest < Minitest::Test
  include Scheduled

  def test_sleeping_fibers_go_on_in_the_order_of_their_times
    order = []
    looping { [0.3, 0.1, 0.2, 0].each { |seconds| Fiber.schedule { sleep(seconds) && order << seconds } } }
    assert_equal [0, 0.1, 0.2, 0.3], order
  end

  def test_a_sleep_is_never_short
    spans = []
    looping { 50.times { |number| Fiber.schedule { spans << [number / 1000.0, elapsed { sleep(number / 1000.0) }] } } }
    spans.each { |wanted, took| assert_operator took, :>=, wanted }
  end

  def test_sleep_refuses_what_is_no_time
    errors = scheduled do
      [-1, "1", false, Float::NAN].map { |value| assert_raises(ArgumentError, TypeError, FloatDomainError) { sleep(value) } }
    end
    assert_equal ["time interval must not be negative", "can't convert String into time interval", "can't convert FalseClass into time interval",
                  "NaN"], errors.map(&:message)
  end

  # Ruby hands on whatever it was given.
  def test_less_than_no_time_is_over_at_once
    waits = [-1, -Float::INFINITY].flat_map do |time|
      [-> { Thread::Queue.new.pop(timeout: time) }, -> { Thread::SizedQueue.new(1).tap { |queue| queue << 1 }.push(2, timeout: time) },
       -> { Thread.new { Fiber.blocking { sleep 0.05 } }.join(time) }]
    end
    assert_equal [nil] * 6, scheduled { waits.map(&:call) }
  end

  def test_sleep_takes_rationals_and_an_endless_sleep_can_be_ended
    woken = []
    looping do
      fiber = Fiber.schedule { assert_raises(IOError) { sleep(Float::INFINITY) } && woken << :endless }
      Fiber.schedule { sleep(1/100r) && fiber.raise(IOError) }
    end
    assert_equal [:endless], woken
  end

  def test_a_hundred_thousand_timers
    count = 100_000
    fired = 0
    looping(stall_ms: nil) do |scheduler|
      timers = scheduler.instance_variable_get(:@timers)
      Fiber.schedule do
        handles = Array.new(count) { |number| timers.after((number % 100) / 1000.0) { fired += 1 } }
        handles.each_slice(2) { |even, _| even.cancel! }
        sleep 0.2
      end
    end
    assert_equal count / 2, fired
  end

  def test_ten_thousand_fibers_sleep_at_once
    ended = 0
    looping do |scheduler|
      10_000.times { Fiber.schedule { sleep(0.05) && ended += 1 } }
      assert_equal 10_000, scheduler.waiting.size
    end
    assert_equal 10_000, ended
  end

  def test_queues_between_fibers_and_threads
    queue = Thread::Queue.new
    answers = Thread::Queue.new
    echo = Thread.new { queue.size.zero? || nil while (item = queue.pop) && answers << item }
    got = []
    looping do
      Fiber.schedule { 1000.times { |number| queue << number && sleep(0) } && queue << nil }
      Fiber.schedule { 1000.times { got << answers.pop } }
    end
    echo.join
    assert_equal (0...1000).to_a, got
  end

  def test_no_wake_up_from_another_thread_is_lost
    rounds = 3_000
    ping = Thread::Queue.new
    pong = Thread::Queue.new
    thread = Thread.new { rounds.times { pong << ping.pop } }
    sum = scheduled { rounds.times.sum { |number| (ping << number) && pong.pop } }
    thread.join
    assert_equal rounds * (rounds - 1) / 2, sum
  end

  def test_a_queue_with_a_timeout
    assert_nil scheduled { Thread::Queue.new.pop(timeout: 0.01) }
  end

  # A fiber that was woken and whose time was over at once must not be woken out of its next wait.
  def test_a_late_wake_up_does_not_end_the_next_sleep
    short = []
    looping do
      mutex = Mutex.new
      condition = ConditionVariable.new
      20.times do
        Fiber.schedule do
          mutex.synchronize { condition.wait(mutex, 0.01) }
          took = elapsed { sleep 0.02 }
          short << took if took < 0.02
        end
      end
      Fiber.schedule { sleep(0.01) && condition.broadcast }
    end
    assert_empty short
  end

  # As in a thread: the lock that the code around gives back has to be there.
  def test_what_strikes_after_a_condition_came_true_waits_for_the_lock
    mutex = Mutex.new
    ends = []
    looping do
      fiber = Fiber.schedule do
        mutex.synchronize { ConditionVariable.new.wait(mutex) }
      rescue IOError => error
        ends << error.message << mutex.locked?
      end
      Fiber.schedule do
        mutex.synchronize { %w[first second third].each { |text| sleep 0 and fiber.raise(IOError, text) } && sleep(0) && ends << :unlocked }
      end
    end
    assert_equal [:unlocked, "third", false], ends
  end

  def test_who_is_killed_after_a_condition_came_true_waits_for_the_lock
    mutex = Mutex.new
    ends = []
    looping do
      fiber = Fiber.schedule do
        mutex.synchronize { ConditionVariable.new.wait(mutex) }
      ensure
        ends << mutex.locked?
      end
      Fiber.schedule { mutex.synchronize { fiber.raise("x").then { fiber.kill } && ends << :unlocked } }
    end
    assert_equal [:unlocked, false], ends
  end

  def test_mutexes_are_handed_on_fairly_among_fibers
    order = []
    looping do
      mutex = Mutex.new
      5.times { |number| Fiber.schedule { mutex.synchronize { sleep(0.001) && order << number } } }
    end
    assert_equal [0, 1, 2, 3, 4], order
  end

  # Its time is over in the turn of the loop in which the lock was handed to it.
  def test_a_timeout_takes_the_lock_from_nobody_else
    got = []
    looping do
      lock = Mutex.new
      Fiber.schedule { lock.synchronize { sleep 0.1 } }
      Fiber.schedule { Timeout.timeout(0.105) { lock.synchronize { got << :first } } rescue nil }
      Fiber.schedule { lock.synchronize { got << :second } }
      Fiber.schedule do
        sleep 0.09
        over = now + 0.03
        nil until now > over
      end
    end
    assert_equal :second, got.last
  end

  # As a signal's handler does, just before the fiber hands over to the loop. Whom of the two it was that was woken can't be told.
  def test_who_sleeps_within_a_wait_leaves_the_outer_one_there
    got = nil
    looping do
      queue = Thread::Queue.new
      transfers = 0
      Fiber.current.define_singleton_method(:transfer) do |*values|
        if (transfers += 1) == 1
          Fiber.schedule { queue << :late }
          sleep 0.01
        end
        super(*values)
      end
      Fiber.schedule { got = queue.pop }
    end
    assert_equal :late, got
  end

  def test_timeouts_nest_and_end_with_their_block
    results = scheduled do
      inner = assert_raises(Timeout::Error) { Timeout.timeout(1) { Timeout.timeout(0.01) { sleep } } }
      outer = assert_raises(Timeout::Error) { Timeout.timeout(0.01) { Timeout.timeout(1) { sleep } } }
      own = assert_raises(IOError) { Timeout.timeout(0.01, IOError, "late") { sleep } }
      value = Timeout.timeout(0.01) { :in_time }
      sleep 0.03 # what is over must not strike now
      [inner.message, outer.message, own.message, value]
    end
    assert_equal ["execution expired", "execution expired", "late", :in_time], results
  end

  def test_no_rescue_in_the_block_takes_a_timeout
    error = scheduled { assert_raises(Timeout::Error) { Timeout.timeout(0.01) { begin; sleep; rescue Timeout::Error; :taken; end } } }
    assert_equal "execution expired", error.message
  end

  # Older ones ask the scheduler for Timeout::Error whether it was given or not.
  TELLS = File.read(Timeout.method(:timeout).source_location[0]).include?("timeout_after(sec, exc,")

  def test_a_rescue_in_the_block_takes_a_timeout_error_that_was_asked_for
    taken = -> { Timeout.timeout(0.01, Timeout::Error) { begin; sleep; rescue Timeout::Error; :taken; end } }
    assert_equal :taken, taken.call
    assert_equal :taken, scheduled(&taken) if TELLS
  end

  def test_a_timeout_concerns_one_fiber
    others = 0
    looping do
      Fiber.schedule { assert_raises(Timeout::Error) { Timeout.timeout(0.01) { sleep } } }
      10.times { Fiber.schedule { sleep(0.03) && others += 1 } }
    end
    assert_equal 10, others
  end

  def test_yield_lets_others_run
    order = []
    looping do |scheduler|
      2.times { |number| Fiber.schedule { 3.times { order << number && scheduler.yield } } }
    end
    assert_equal [0, 1, 0, 1, 0, 1], order
  end

  def test_a_fiber_can_be_interrupted_from_another_thread
    fiber = nil
    ready = Thread::Queue.new
    other = nil
    error = nil
    looping do |scheduler|
      fiber = Fiber.schedule { error = assert_raises(IOError) { ready << true && sleep } }
      other = Thread.new { ready.pop && scheduler.fiber_interrupt(fiber, IOError.new("closed")) }
    end
    other.join
    assert_equal "closed", error.message
  end
end
