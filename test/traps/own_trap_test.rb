# frozen_string_literal: true

require "harness/trap_test"

# The application may have a use of its own for SIGURG.
class OwnTrapTest < Harness::TrapTest
  def test_a_trap_set_before_the_start_gets_its_signals_and_none_of_ours
    seen = 0
    trap("URG") { seen += 1 }
    with_headway(:fair_signal) do
      load_for(100)
      assert_equal 0, seen, "our own signal reached the application"
      urge
      await("trap") { seen == 1 }
    end
    urge
    await("trap after the stop") { seen == 2 }
  end

  def test_a_trap_set_after_the_start_gets_its_signals_and_scheduling_goes_on
    seen = 0
    with_headway(:fair_signal) do
      load_for(40)
      trap("URG") { seen += 1 }
      waits = load_for(300)
      assert_operator seen, :<=, 1, "our own signals reach the application"
      before = seen
      urge
      await("trap") { seen > before }
      assert_operator percentile(waits, 0.9), :<, 0.05
    end
    before = seen
    urge
    await("trap after the stop") { seen > before }
  end

  def test_a_trap_set_back_to_default_does_no_harm
    with_headway(:fair_signal) do
      trap("URG", "DEFAULT")
      load_for(80)
      trap("URG", "IGNORE")
      assert_operator percentile(load_for(300), 0.9), :<, 0.05
    end
    assert_equal :ignore, VMFixture.disposition(Signal.list["URG"])
  end

  def test_a_signal_from_outside_without_a_trap_does_no_harm
    with_headway(:fair_signal) do
      beside_cpu_threads(2) { |_, _| 50.times { urge; sleep 0.001 } }
    end
    urge
  end

  # The C library may allocate a thread's storage when it is first used; in a handler that may be in the midst of another allocation.
  def test_a_signal_from_outside_without_a_trap_allocates_nothing
    with_headway(:fair_signal) do
      before, after = VMFixture.storage_around_signal("headway.so")
      assert_equal before, after
    end
  end

  private

  def urge = system("kill -URG #{Process.pid}")

  # Seconds by which each of so many wake-ups beside computing threads came late.
  def load_for(wake_ups)
    beside_cpu_threads(2) { Array.new(wake_ups) { elapsed { sleep 0.002 } - 0.002 } }
  end
end
