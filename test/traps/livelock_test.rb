# frozen_string_literal: true

require "harness/trap_test"

# Trap: a thread that is triggered as fast as it can answer never gets to its own work.
class LivelockTest < Harness::TrapTest
  URG = Signal.list["URG"]

  test_under Harness::Modes::ALL.keys, "a storm of signals leaves time to work" do |_mode|
    alone = rate_of_work(0)
    stormy = rate_of_work(0.0001)
    assert_operator stormy, :>, alone * 0.1
  end

  test_under Harness::Modes::PREEMPTING, "a storm beside other threads leaves all of them time" do
    beside_io_threads(4, pause: 0.0002) do
      beside_cpu_threads(3) do |counters, threads|
        before = counters.dup
        advanced = nil
        storm(threads.first, 0.0001) do
          sleep scale(1)
          await("all of them", pause: 0.1, details: -> { advanced }) do
            advanced = counters.zip(before).map { |after, start| after - start }
            advanced.all?(&:positive?) && advanced.min > advanced.max * 0.02
          end
        end
      end
    end
  end

  private

  # In a processor's second: how many of those there are in a second is up to the machine.
  def rate_of_work(interval)
    beside_cpu_threads(2) do |counters, threads|
      before = counters.sum
      started = worked
      storm(threads.first, interval) { await("work", pause: 0.05) { worked - started > 0.6 } }
      return (counters.sum - before) / (worked - started)
    end
  end

  def storm(thread, interval)
    await("start") { thread.native_thread_id }
    VMFixture.start_storm(thread.native_thread_id, URG, interval) if interval.positive?
    yield
  ensure
    VMFixture.stop_storm
  end
end
