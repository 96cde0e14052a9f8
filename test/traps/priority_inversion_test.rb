# frozen_string_literal: true

require "harness/trap_test"
require "monitor"
require "tmpdir"

# Trap: the thread that has the lock is parked, and who needs the lock waits for the gate too.
class PriorityInversionTest < Harness::TrapTest
  INSIDE = 0.02 # seconds of work under the lock
  BOUND = 1.5 # seconds of the hogs' work: a few rounds of all threads at the quantum below

  test_under Harness::Modes::PREEMPTING, "a mutex is passed on in time", quantum_ms: 20 do
    assert_bounded(Thread::Mutex.new)
  end

  test_under Harness::Modes::PREEMPTING, "a monitor is passed on in time", quantum_ms: 20 do
    assert_bounded(Monitor.new)
  end

  test_under Harness::Modes::PREEMPTING, "the lock of a require is passed on in time", quantum_ms: 20 do
    Dir.mktmpdir do |directory|
      delays = beside_cpu_threads(3) do
        Array.new(8) do |number|
          file = File.join(directory, "feature_#{number}.rb")
          File.write(file, "deadline = Process.clock_gettime(1) + #{INSIDE}\nnil while Process.clock_gettime(1) < deadline\n")
          first = Thread.new { require file }
          sleep 0.005
          delay { require file }.tap { first.join }
        end
      end
      assert_operator delays.max, :<, BOUND, delays
    end
  end

  private

  # Seconds that all threads worked meanwhile.
  def delay
    before = worked
    yield
    worked - before
  end

  def assert_bounded(lock)
    stop = false
    delays = beside_cpu_threads(3) do
      holder = Thread.new { lock.synchronize { compute(INSIDE) } && sleep(0.003) until stop }
      waits = Array.new(15) do
        sleep 0.01
        delay { lock.synchronize { nil } }
      end
      stop = true
      holder.join
      waits
    end
    assert_operator delays.max, :<, BOUND, delays
  end
end
