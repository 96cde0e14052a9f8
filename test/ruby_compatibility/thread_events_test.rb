# frozen_string_literal: true

require "harness/isolated_test"
require "harness/vm_events"
require "harness/workload"

# Which thread events fire, in what order, and on whose native thread.
class ThreadEventsTest < Harness::IsolatedTest
  include Harness::Workload

  BLOCK = %i[suspended ready resumed].freeze

  def record(&) = Harness::VMEvents.record(&)

  def test_a_block_without_the_gvl_fires_all_three_on_the_own_native_thread
    own = record { VMFixture.sleep_without_gvl(0.005) }.of(Thread.current)
    assert_equal BLOCK, own.kinds
    assert_equal [Thread.current.native_thread_id], own.events.map(&:native_thread).uniq
  end

  def test_a_timed_sleep_fires_the_same
    own = record { sleep 0.005 }.of(Thread.current)
    assert_equal BLOCK, own.kinds
    assert_equal [Thread.current.native_thread_id], own.events.map(&:native_thread).uniq
  end

  def test_an_empty_release_fires_all_three_each_time
    assert_equal BLOCK * 3, record { VMFixture.release_gvl(3) }.of(Thread.current).kinds
  end

  def test_a_pass_without_competition_fires_nothing
    assert_empty record { 5.times { Thread.pass } }.of(Thread.current).kinds
  end

  def test_a_preempted_thread_is_ready_at_once_and_a_blocked_one_is_not
    number = nil
    events = record do
      beside_cpu_threads(2) do |_, threads|
        number = VMFixture.number_of(threads.first)
        sleep 0.6
        take_turns(3)
      end
    end
    preempted = events.of(number).spans(:suspended, :ready)
    blocked = events.of(Thread.current).spans(:suspended, :ready)
    assert_operator preempted.size, :>, 1
    assert_operator median(preempted), :<, 0.002
    assert_operator blocked.max, :>, 0.5
  end

  def test_a_new_thread_is_announced_by_its_creator
    creator = Thread.current.native_thread_id
    native = number = nil
    events = record do
      thread = Thread.new { native = Thread.current.native_thread_id }
      number = VMFixture.number_of(thread)
      thread.join
      await("its exit") { !native_thread_ids.include?(native) } # a little after it can be joined
    end
    own = events.of(number)
    assert_equal %i[started ready resumed suspended exited], own.kinds
    assert_equal [creator, creator, native, native, native], own.events.map(&:native_thread)
  end

  def test_the_thread_that_pushes_fires_ready_for_the_one_that_pops
    assert_ready_fires_on_the_waker(-> { Thread::Queue.new }, :pop, :push)
  end

  def test_the_thread_that_wakes_fires_ready_for_an_untimed_sleeper
    sleeper = Thread.new { Thread.stop }
    assert_woken_by_main(sleeper) { sleeper.wakeup }
  end

  def test_the_thread_that_kills_fires_ready_for_an_untimed_sleeper
    sleeper = Thread.new { Thread.stop }
    assert_woken_by_main(sleeper) { sleeper.kill }
  end

  def test_the_thread_that_unlocks_fires_ready_for_the_one_that_waits
    mutex = Thread::Mutex.new.tap(&:lock)
    waiter = Thread.new { mutex.synchronize { 1 } }
    assert_woken_by_main(waiter) { mutex.unlock }
  end

  # An interrupt between the hook and the wait: nothing balances the event.
  def test_a_suspended_may_come_without_a_ready
    trap("USR2") { nil }
    other = Thread.new { loop { sleep 1 } } # the only thread may not stop
    VMFixture.start_storm(Thread.main.native_thread_id, Signal.list["USR2"], 0.00002)
    await("two suspended in a row", limit: 30) do
      waker = Thread.new { 50.times { sleep 0.0002; Thread.main.wakeup } }
      events = record { 50.times { Thread.stop } }
      waker.kill.join
      events.of(Thread.main).kinds.each_cons(2).include?(%i[suspended suspended])
    end
  ensure
    VMFixture.stop_storm
    other.kill.join
  end

  def test_resumed_can_tell_the_main_ractor_on_the_own_native_thread
    ours = other = nil
    events = record do
      ours = Thread.new { sleep 0.001; VMFixture.number_of(Thread.current) }.value
      ractor = silently { Ractor.new { sleep 0.001; VMFixture.number_of(Thread.current) } }
      other = ractor.respond_to?(:value) ? ractor.value : ractor.take
    end
    in_main = ->(number) { events.of(number).events.select { |event| event.kind == :resumed }.map(&:main_ractor).uniq }
    assert_equal [true], in_main.(ours)
    assert_equal [true], in_main.(VMFixture.number_of(Thread.current))
    assert_equal [false], in_main.(other)
  end

  private

  def assert_ready_fires_on_the_waker(make, wait, wake)
    object = make.call
    waiter = Thread.new { object.public_send(wait) }
    assert_woken_by_main(waiter) { object.public_send(wake, 1) }
  end

  def assert_woken_by_main(waiter)
    await("block") { waiter.stop? }
    waiting_on = waiter.native_thread_id
    events = record do
      yield
      waiter.join
    end
    ready, resumed = events.of(waiter).events.first(2)
    assert_equal %i[ready resumed], [ready.kind, resumed.kind]
    assert_equal Thread.current.native_thread_id, ready.native_thread
    assert_equal waiting_on, resumed.native_thread
  end

  def silently
    verbose, $VERBOSE = $VERBOSE, nil # Ractors are announced as experimental
    yield
  ensure
    $VERBOSE = verbose
  end
end
