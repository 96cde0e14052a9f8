# frozen_string_literal: true

require "harness/trap_test"
require "timeout"

# Trap: rb_nogvl declines to park because the VM's own timer has interrupted the
# thread. With the shortest slice (Ruby 3.4 on) that happens all the time.
class ShortSliceTest < Harness::TrapTest
  env "RUBY_THREAD_TIMESLICE" => "1"

  test_under Harness::Modes::FAIR, "batch threads share and wakers pass", quantum_ms: 5 do
    wakers = nil
    events = Harness::VMEvents.record do
      beside_cpu_threads(6) do |counters|
        wakers = wake_ups(threads: 4, times: 600, pause: 0.001)
        await("even shares", pause: 0.1, details: -> { counters }) { counters.min > counters.max * 0.1 }
      end
    end
    waits = wakers.flat_map { |number| events.of(number).waits }
    assert_operator percentile(waits, 0.5), :<, 0.02
    assert_operator percentile(waits, 0.99), :<, 0.25
  end

  test_under Harness::Modes::PREEMPTING, "no timeout is lost", quantum_ms: 1 do
    beside_cpu_threads(3) do
      beside_io_threads(3, pause: 0.0002) do
        50.times { assert_raises(Timeout::Error) { Timeout.timeout(0.002) { nil while true } } }
      end
    end
  end
end
