# frozen_string_literal: true

require "harness/last_word"
require "harness/trap_test"

# Trap: a thread parks in the very interrupt check that would have served its
# signal or its kill. A long quantum keeps the gate closed to all but one thread.
class ClosedGateTest < Harness::TrapTest
  PROMPT = 0.05 # seconds

  test_under Harness::Modes::FAIR, "a signal reaches a parked main thread", quantum_ms: 4_000 do
    delays = []
    sent = nil
    trap("USR1") { delays << (now - sent) }
    sender = Thread.new do
      30.times do |count|
        sent = now
        Process.kill(:USR1, Process.pid)
        await("signal no. #{count}") { delays.size > count }
        sleep 0.015 # long enough for the main thread to count as batch and park
      end
      :done
    end
    beside_cpu_threads(3) { count = 0; count += 1 while sender.alive? } # computing, not joining
    assert_equal :done, sender.value
    assert_operator median(delays), :<, PROMPT, "delays: #{delays.max(5)}"
  end

  test_under Harness::Modes::FAIR, "a kill reaches a parked thread", quantum_ms: 4_000 do
    delays = beside_cpu_threads(3) do
      Array.new(40) do
        target = Thread.new { loop { nil } }
        sleep 0.03
        elapsed { assert target.kill.join(patience(10)), "the kill was lost" }
      end
    end
    assert_operator median(delays), :<, PROMPT, "delays: #{delays.max(5)}"
  end

  # After a park its thread queues for the GVL with nothing to call it back: an
  # interrupt that comes just then must not wait for the gate.
  # A quantum so long that the hogs are passed over until the end: after four of them it is their turn all the same.
  test_under Harness::Modes::FAIR, "a kill reaches a thread between two parks", quantum_ms: 60_000 do
    random = Random.new(1)
    delays = beside_cpu_threads(3) do |_, hogs|
      # What a killed thread has yet to do is done in its turn: until the hogs are of the last tier that comes after theirs.
      await("the last tier") { hogs.all? { |hog| Headway.thread(hog).stats[:running] > 0.99 } }
      Array.new(scale(150)) do
        target = Thread.new { loop { nil } }
        sleep random.rand * 0.03
        compute(random.rand * 0.005)
        before = worked
        delay = elapsed { assert target.kill.join(patience(20)), "the kill was lost" }
        [delay, worked - before]
      end
    end
    assert_operator median(delays.map(&:first)), :<, PROMPT
    worst = delays.map(&:last).max(5) # what the hogs did meanwhile
    assert_operator worst.first, :<, 1, "delays: #{worst}"
  end

  test_under Harness::Modes::FAIR, "a raise reaches a parked thread", quantum_ms: 4_000 do
    delays = beside_cpu_threads(3) do
      Array.new(40) do
        begun = Queue.new
        target = Thread.new do
          begun << :inside
          loop { nil }
        rescue IndexError
          nil
        end
        begun.pop # before that nothing rescues
        sleep 0.03
        elapsed { target.raise(IndexError); assert target.join(patience(10)), "the raise was lost" }
      end
    end
    assert_operator median(delays), :<, PROMPT, "delays: #{delays.max(5)}"
  end

  test_under Harness::Modes::FAIR, "a signal handler may itself compute", quantum_ms: 20 do
    handled = 0
    trap("USR1") { compute(0.02); handled += 1 }
    sender = Thread.new do
      10.times do |count|
        Process.kill(:USR1, Process.pid)
        await("handler no. #{count}") { handled > count } # else two signals may fall together, as on any Unix
        sleep 0.03
      end
    end
    beside_cpu_threads(3) { count = 0; count += 1 while sender.alive? }
    sender.join
    assert_equal 10, handled
  end

  # Where the VM serves no job, nobody is preempted: what waits there for a parked thread, and passes the GVL on, waits in vain.
  test_under Harness::Modes::FAIR, "a finalizer can wait for a parked thread" do
    assert_answered do |wait|
      called = false
      # Several: a word left on the stack may keep one of them, as it did under YJIT.
      10.times { ObjectSpace.define_finalizer(Object.new, proc { called = true; wait.call }) }
      Object.new until called # a collection of its own accord leaves finalizers to a job
    end
  end

  test_under Harness::Modes::FAIR, "a thread that is ending can wait for a parked thread" do
    assert_answered do |wait|
      assert_raises(Harness::LastWord) do
        Harness::LastWord.of_a_thread(&wait)
        sleep
      end
    end
  end

  private

  # The wait the block is given is for a thread that computes, and computes itself.
  def assert_answered
    asked = answered = false
    hog = Thread.new do
      Thread.pass until asked
      compute(0.6) # more than a turn
      answered = true
    end
    yield -> { asked = true; Thread.pass until answered }
    assert hog.join(patience(10)), "it was not let go"
  end
end
