# frozen_string_literal: true

require "harness/isolated_test"
require "harness/vm_events"
require "harness/workload"

# How long the VM lets a thread run, and what changes that.
class TimeSliceTest < Harness::IsolatedTest
  include Harness::Workload

  BRIEF = 0.002 # seconds: no slice, but a look at a variable

  # Seconds that each thread of two held the GVL, by thread; priorities as given. A busy machine makes holds longer, never shorter:
  # what is judged is their lower quarter. The last one is cut short by the end.
  def holds_of_two(priorities: [0, 0], turns: 7)
    numbers = []
    events = Harness::VMEvents.record do
      beside_cpu_threads(2) do |_, threads|
        threads.zip(priorities) { |thread, priority| thread.priority = priority }
        numbers = threads.map { |thread| VMFixture.number_of(thread) }
        take_turns(turns)
      end
    end
    numbers.map { |number| events.of(number).holds.select { |held| held > BRIEF } }
  end

  def lower_quarter(holds) = percentile(holds, 0.25)

  def test_a_thread_runs_for_about_100_ms_while_another_waits
    holds = holds_of_two.flatten
    assert_includes 0.04..0.4, lower_quarter(holds), "holds: #{holds}"
  end

  def test_priority_changes_the_length_of_the_slice
    low, high = holds_of_two(priorities: [-3, 1], turns: 9).map { |holds| lower_quarter(holds) }
    assert_operator low * 3, :<, high # an eighth of it, and twice
    assert_operator high, :>, 0.12
  end

  # What reports say of holders that heed no interrupt rests on it: whatever a piece takes, it costs the slice 10 ms.
  def test_a_slice_is_counted_in_interrupts_that_are_heeded
    pieces = 0
    holder = Thread.new do
      loop do
        VMFixture.sleep_holding_gvl(0.04)
        pieces += 1
      end
    end
    passed = Array.new(5) do
      before = pieces
      sleep 0.001
      pieces - before
    end
    assert_operator median(passed), :>=, 8, "pieces of 40 ms: #{passed}" # on a busy machine it is more
  ensure
    holder&.kill&.join
  end

  def test_the_ready_queue_is_first_in_first_out
    events = Harness::VMEvents.record { beside_cpu_threads(3) { take_turns(5) } }
    order = events.events.select { |event| event.kind == :resumed }.map(&:thread)
    order -= [VMFixture.number_of(Thread.current)]
    rounds = order.last(6).each_slice(3).to_a
    assert_equal rounds.first, rounds.last
    assert_equal 3, rounds.first.uniq.size
  end

  def test_the_switch_event_fires_under_competition_only
    assert_equal 0, VMFixture.count_switches { compute(0.2) }
    assert_operator VMFixture.count_switches { beside_cpu_threads(1) { |counters, _| nil while counters.first.zero? } }, :>, 0
  end

  def test_sigurg_is_ignored_by_default
    assert_equal :default, VMFixture.disposition(Signal.list["URG"])
    Process.kill(:URG, Process.pid)
    sleep 0.01
  end
end

# RUBY_THREAD_TIMESLICE, which Ruby reads once, when it starts.
class ShortTimeSliceTest < Harness::IsolatedTest
  include Harness::Workload

  env "RUBY_THREAD_TIMESLICE" => "20"

  def test_the_variable_sets_the_slice_from_3_4_on
    events = Harness::VMEvents.record { beside_cpu_threads(2) { take_turns(6) } }
    hold = percentile(events.holds.select { |seconds| seconds > 0.002 }, 0.25)
    if RUBY_VERSION < "3.4"
      assert_operator hold, :>, 0.06
    else
      assert_operator hold, :<, 0.06
    end
  end
end

# A value Ruby cannot use is no error: it keeps its own slice.
class BadTimeSliceTest < Harness::IsolatedTest
  include Harness::Workload

  env "RUBY_THREAD_TIMESLICE" => "abc"

  def test_a_bad_value_is_ignored
    events = Harness::VMEvents.record { beside_cpu_threads(2) { take_turns(5) } }
    assert_operator median(events.holds.select { |seconds| seconds > 0.002 }), :>, 0.06
  end
end
