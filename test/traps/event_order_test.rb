# frozen_string_literal: true

require "harness/trap_test"

# Trap: the VM's events are not balanced. Whatever their order, a thread's times
# add up to the time that passed, and nobody is left in a wrong state.
class EventOrderTest < Harness::TrapTest
  test_under Harness::Modes::ALL.keys, "times add up after stops, wake-ups and signals in any order" do
    trap("USR2") { nil }
    started = now
    VMFixture.start_storm(Thread.main.native_thread_id, Signal.list["USR2"], 0.0001)
    fuzz(scale(1))
    VMFixture.stop_storm

    wall = now - started
    stats = Headway.stats
    assert_operator stats[:wall], :>=, wall
    assert_adds_up(stats[:threads].find { |row| row[:name] == "main" }, stats[:wall])
    assert_operator stats[:process][:running], :<=, stats[:wall] * 1.05
    stats[:process].slice(:running, :ready, :suspended).each_value { |seconds| assert_operator seconds, :>=, 0 }
    assert_waker_is_served
  end

  private

  def fuzz(seconds)
    random = Random.new(1)
    mutex = Thread::Mutex.new
    queue = Thread::Queue.new
    deadline = now + seconds
    workers = Array.new(6) do |index|
      own = Random.new(index)
      Thread.new do
        while now < deadline
          case own.rand(6)
          when 0 then sleep own.rand * 0.001
          when 1 then mutex.synchronize { compute(0.0002) }
          when 2 then queue << 1
          when 3 then queue.pop(timeout: 0.001)
          when 4 then compute(own.rand * 0.01)
          when 5 then mutex.synchronize { mutex.sleep(0.001) }
          end
        end
      end
    end
    over = false
    waker = Thread.new { (workers.sample(random: random).wakeup rescue nil; Thread.main.wakeup; sleep 0.0003) until over }
    Thread.stop while now < deadline
    over = true
    [*workers, waker].each(&:join)
  end

  def assert_adds_up(row, wall)
    total = row[:running] + row[:ready] + row[:suspended]
    assert_in_delta wall, total, wall * 0.1 + 0.1, row
  end

  # A leaked waiter or holder would make every later wake-up slow, or preempt for nobody.
  def assert_waker_is_served
    before = Headway.stats[:process][:preemptions]
    compute(0.3)
    assert_operator Headway.stats[:process][:preemptions] - before, :<, 100, "preempted for nobody"
  end
end
