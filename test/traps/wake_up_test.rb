# frozen_string_literal: true

require "harness/trap_test"

# Traps: a trigger that hits the wrong thread, and a trigger that gets lost.
class WakeUpTest < Harness::TrapTest
  # Of a lost trigger the waker pays what is left of the holder's time slice of the VM, 800 ms with this priority: far more than of a
  # busy machine, even where nothing of Headway's own looks after it.
  LONG_SLICES = 3 # the priority
  LATE = 0.2 # seconds

  test_under Harness::Modes::FAIR, "the holder gives way and not the waker" do
    wakers = nil
    events = Harness::VMEvents.record do
      beside_cpu_threads(4) do |_, threads|
        threads.each { |thread| thread.priority = LONG_SLICES }
        wakers = wake_ups(threads: 4, times: 250, pause: 0.005)
      end
    end
    own = wakers.map { |number| events.of(number) }
    waits = own.flat_map(&:waits)
    given_way = wakers.sum { |number| events.of(number).spans(:suspended, :ready).count { |seconds| seconds < 0.002 } }

    assert_operator waits.size, :>=, 1000
    assert_operator percentile(waits, 0.5), :<, 0.02
    assert_operator times_late(own), :<=, waits.size / 100
    assert_operator given_way, :<, waits.size / 20, "wakers were preempted themselves"
  end

  test_under Harness::Modes::FAIR, "no wake-up is lost" do
    wakers = nil
    events = Harness::VMEvents.record do
      beside_cpu_threads(3) do |_, threads|
        threads.each { |thread| thread.priority = LONG_SLICES }
        wakers = wake_ups(threads: 4, times: scale(10_000) / 4, pause: 0.0002)
      end
    end
    own = wakers.map { |number| events.of(number) }
    waits = own.flat_map(&:waits)
    assert_operator waits.size, :>=, scale(10_000) / 4 * 4
    assert_operator times_late(own), :<=, waits.size / 2_000, "longest: #{waits.max(5)}"
  end

  # The VM takes a thread that starts for the one that runs, and the ticker's trigger goes to that one.
  test_under Harness::Modes::FAIR, "a holder that has just created a thread gives way" do
    delays = Array.new(5) do
      Thread.new do
        Thread.current.priority = LONG_SLICES
        compute(0.02)
        created = now
        born = nil
        thread = Thread.new { born = now }
        compute(0.5)
        thread.join
        born - created
      end.value
    end
    assert_operator median(delays), :<, LATE, "delays: #{delays}"
  end

  # A fiber takes the trigger with it when it is left.
  test_under Harness::Modes::FAIR, "a holder that switches fibers gives way" do
    stop = false
    holder = Thread.new do
      numbers = Enumerator.new { |out| loop { out << 1 } }
      numbers.next until stop
    end
    holder.priority = LONG_SLICES
    wakers = nil
    events = Harness::VMEvents.record { wakers = wake_ups(threads: 2, times: 1_000, pause: 0.001) }
    stop = true
    holder.join
    own = wakers.map { |number| events.of(number) }
    assert_operator own.sum { |events_of_one| events_of_one.waits.size }, :>=, 2_000
    assert_operator times_late(own), :<=, 2_000 / 100
  end

  private

  # So often somebody waited for too long. When the machine stops everybody does at once: those who waited together count once.
  def times_late(own)
    late = own.flat_map { |events| events.events.each_cons(2).select { |a, b| a.kind == :ready && b.kind == :resumed && b.at_ns - a.at_ns > LATE * 1e9 } }
    late.map { |_, resumed| resumed.at_ns }.sort.slice_when { |one, next_one| next_one - one > LATE * 1e9 }.count
  end
end
