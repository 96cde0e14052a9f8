# frozen_string_literal: true

require "test_helper"
require "harness/isolated_test"
require "headway"

# The meter in the VM: whatever happens in the block, the next one can be metered.
class MeteredTest < Harness::IsolatedTest
  Native = Headway::Native if Headway.supported?

  def test_times_add_up
    start = now
    *times, releases, wasteful = Native.metered { 50.times { sleep(0.001) } }
    wall_s = now - start
    assert_equal 6, times.size
    assert_operator times.sum, :<=, wall_s
    assert_operator times.sum, :>, wall_s * 0.2
    assert_operator releases, :>=, 50
    assert_operator wasteful, :<=, releases
  end

  def test_one_at_a_time
    Native.metered { assert_nil(Native.metered { flunk }) }
    Native.metered { assert_nil(Thread.new { Native.metered { flunk } }.value) }
  end

  def test_an_exception_ends_it
    assert_raises(IndexError) { Native.metered { raise IndexError } }
    assert_equal(:thrown, catch(:ball) { Native.metered { throw :ball, :thrown } })
    assert_metered
  end

  def test_a_kill_ends_it
    thread = Thread.new { Native.metered { sleep } }
    Thread.pass until thread.stop?
    thread.kill.join
    assert_metered
  end

  def test_in_forked_children
    Native.metered { assert_child { true } }
    3.times do
      assert_child { metered? && metered? }
      Native.metered { Thread.new { assert_child { metered? } }.join }
    end
    assert_metered
  end

  def test_threads_objects_and_collections_beside_it
    neighbour = Thread.new { loop { Thread.new { Object.new }.join } }
    GC.stress = true
    result = Native.metered { 3.times { sleep(0.0005) } }
    GC.stress = false
    GC.compact
    assert_operator result[6], :>=, 3
    assert_metered
  ensure
    GC.stress = false
    neighbour&.kill&.join
  end

  def test_with_headway_started_and_stopped_meanwhile
    Native.metered do
      Headway.start(policy: :fair)
      sleep(0.002)
      Headway.stop
      sleep(0.002)
    end
    assert_metered
  end

  private

  def assert_child
    child = fork { exit!(yield ? 0 : 1) }
    assert_predicate Process.wait2(child).last, :success?
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # Slept for longer than a busy machine keeps a thread from a core, which is told apart from the sleep.
  def metered? = Native.metered { sleep(0.03) }&.at(2).to_f > 0.001

  def assert_metered = assert_predicate(self, :metered?)
end
