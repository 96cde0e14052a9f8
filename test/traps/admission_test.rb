# frozen_string_literal: true

require "harness/trap_test"

# Traps: the GVL idles while threads are parked; a wake-up from the gate is lost;
# a parked thread looks asleep.
class AdmissionTest < Harness::TrapTest
  NAP = 0.04 # seconds; nobody else would have the GVL meanwhile

  test_under Harness::Modes::FAIR, "the gvl does not idle when the admitted thread sleeps or ends", quantum_ms: 200 do
    events = Harness::VMEvents.record do
      beside_cpu_threads(1) do
        nappers = Array.new(3) { Thread.new { 10.times { compute(0.01); sleep NAP } } }
        8.times { Thread.new { compute(0.012) }.join(0.05) }
        nappers.each(&:join)
      end
    end
    assert_operator median(idle_after_naps(events.events)), :<, NAP / 2
    assert_equal 0, Headway.stats[:process][:park_timeouts]
  end

  test_under Harness::Modes::FAIR, "no park times out under a steady load" do
    beside_cpu_threads(4) { beside_io_threads(4, pause: 0.002) { sleep scale(1) } }
    assert_equal 0, Headway.stats[:process][:park_timeouts]
  end

  test_under Harness::Modes::FAIR, "batch threads share the gvl evenly", quantum_ms: 10 do
    beside_cpu_threads(4) do |counters|
      sleep scale(1)
      await("even shares", pause: 0.1, details: -> { counters }) { counters.min > counters.max * 0.3 }
    end
  end

  # Documented: for whoever wakes and looks, the threads it displaced are asleep.
  test_under Harness::Modes::FAIR, "a parked thread looks asleep and goes on all the same", quantum_ms: 10 do
    beside_cpu_threads(3) do |counters, threads|
      statuses = Array.new(300) { sleep(0.003) && threads.map(&:status) }
      assert_empty statuses.flatten.uniq - %w[run sleep]
      assert_go_on counters
    end
  end

  test_under Harness::Modes::FAIR, "wakeup and run do no harm to a parked thread", quantum_ms: 50 do
    beside_cpu_threads(3) do |counters, threads|
      500.times { threads.each(&:wakeup); threads.sample.run; sleep 0.0005 }
      assert_go_on counters
    end
  end

  private

  def assert_go_on(counters)
    before = counters.dup
    await("every thread to go on") { counters.zip(before).all? { |after, start| after > start } }
  end

  # Seconds from the beginning of each nap, or a thread's end, until another thread has the GVL.
  def idle_after_naps(events)
    events.each_with_index.filter_map do |event, index|
      next unless event.kind == :suspended

      rest = events.drop(index + 1)
      back = rest.find { |later| later.thread == event.thread }
      next if back && back.at_ns - event.at_ns < NAP * 0.9e9

      resumed = rest.find { |later| later.kind == :resumed } or next
      (resumed.at_ns - event.at_ns) / 1e9
    end
  end
end
