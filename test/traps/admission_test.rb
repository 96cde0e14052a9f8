# frozen_string_literal: true

require "harness/trap_test"

# Traps: the GVL idles while threads are parked; a wake-up from the gate is lost;
# a parked thread looks asleep.
class AdmissionTest < Harness::TrapTest
  test_under Harness::Modes::FAIR, "the gvl does not idle when the admitted thread sleeps or ends", quantum_ms: 200 do
    held = wall = nil
    events = Harness::VMEvents.record do
      wall = elapsed do
        beside_cpu_threads(1) do
          nappers = Array.new(3) { Thread.new { 20.times { compute(0.01); sleep 0.003 } } }
          8.times { Thread.new { compute(0.012) }.join(0.05) }
          nappers.each(&:join)
        end
      end
    end
    held = events.holds.sum
    assert_operator held, :>, wall * 0.85
    assert_equal 0, Headway.stats[:process][:park_timeouts]
  end

  test_under Harness::Modes::FAIR, "no park times out under a steady load" do
    beside_cpu_threads(4) { beside_io_threads(4, pause: 0.002) { sleep 2 } }
    assert_equal 0, Headway.stats[:process][:park_timeouts]
  end

  test_under Harness::Modes::FAIR, "batch threads share the gvl evenly", quantum_ms: 10 do
    beside_cpu_threads(4) do |counters|
      sleep 2
      assert_operator counters.min, :>, counters.max * 0.5, counters
    end
  end

  # Documented: for whoever wakes and looks, the threads it displaced are asleep.
  test_under Harness::Modes::FAIR, "a parked thread looks asleep and goes on all the same", quantum_ms: 10 do
    beside_cpu_threads(3) do |counters, threads|
      statuses = Array.new(300) { sleep(0.003) && threads.map(&:status) }
      assert_empty statuses.flatten.uniq - %w[run sleep]
      before = counters.dup
      sleep 1
      assert counters.zip(before).all? { |after, start| after > start }
    end
  end

  test_under Harness::Modes::FAIR, "wakeup and run do no harm to a parked thread", quantum_ms: 50 do
    beside_cpu_threads(3) do |counters, threads|
      500.times { threads.each(&:wakeup); threads.sample.run; sleep 0.0005 }
      before = counters.dup
      sleep 1
      assert counters.zip(before).all? { |after, start| after > start }, "a thread is stuck"
    end
  end
end
