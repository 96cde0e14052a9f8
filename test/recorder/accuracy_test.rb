# frozen_string_literal: true

require "harness/recorder_test"
require "gvltools"

# What Headway counts is what others count: gvltools' timers, the system's clock of each thread, the wall clock.
class AccuracyTest < Harness::RecorderTest
  Look = Struct.new(:row, :waited, :cpu, :lived)

  def now(clock = Process::CLOCK_MONOTONIC) = Process.clock_gettime(clock)

  # All clocks at one moment: nothing was waited for between the two looks at gvltools' timer. The thread has lived for no less than
  # since its block began, and no longer than since before it was made.
  def look(made, begun)
    loop do
      shortest = now - begun
      waited = GVLTools::LocalTimer.monotonic_time
      row = Headway.stats[:threads].find { |thread| thread[:name] == Thread.current.name }
      cpu = now(Process::CLOCK_THREAD_CPUTIME_ID)
      return Look.new(row, waited / 1e9, cpu, shortest..(now - made)) if GVLTools::LocalTimer.monotonic_time == waited
    end
  end

  # @yield [Integer, Float] which thread of five it is, of which three compute, and when it began; whether it is done
  def looks(policy)
    GVLTools::LocalTimer.enable
    gate = Thread::Queue.new
    with_headway(policy) do
      threads = Array.new(5) do |index|
        made = now
        Thread.new do
          Thread.current.name = "t#{index}"
          started = now
          gate.pop
          index < 3 ? compute(0.01) : sleep(0.001) until yield(index, started)
          look(made, started)
        end
      end
      # A thread that waits for its very first turn for more than a second counts as one that never came to be.
      await("all of them") { gate.num_waiting == threads.size }
      gate.close
      return threads.map(&:value)
    end
  ensure
    GVLTools::LocalTimer.disable
  end

  def test_waits_are_those_that_gvltools_counts
    waited = Array.new(5, 0)
    looks = looks(:observe) do |index|
      waited[index] = GVLTools::LocalTimer.monotonic_time
      waited.min > 50_000_000
    end
    agreed = looks.select { |look| (look.row[:ready] - look.waited).abs <= 0.02 * look.waited }
    # Each has a clock reading of its own: of five threads one may have been stopped between the two.
    assert_operator agreed.size, :>=, 4, looks.map { |look| [look.row[:name], look.waited, look.row[:ready]] }.inspect
  end

  # The first hold, and one in the middle.
  def test_a_hold_while_the_process_is_stopped_is_off_the_processor
    over = false
    said = recorded do
      worker = Thread.new { compute(0.01) until over }
      worker.name = "stopped"
      2.times { Process.wait(Process.spawn("sleep 0.2; kill -STOP #{Process.pid}; sleep 0.5; kill -CONT #{Process.pid}")) }
      over = true
      worker.join
    end
    row = thread_named("stopped", from: said)

    assert_operator row[:off_cpu_s], :>=, 0.9
    assert_operator row[:off_cpu_s], :<=, row[:running_s]
    assert_in_delta said[:threads].sum { |thread| thread[:off_cpu_s] }, said[:totals][:off_cpu_s], 1e-9
  end

  # A thread that runs uses the processor, but for the moments in which the system runs somebody else; one that is suspended may
  # use some in system calls, and one that waits for its turn some to look out for it.
  def test_running_is_no_less_than_the_threads_own_clock_and_all_states_are_the_wall_clock
    looks = looks(:fair_signal) { |index, started| now - started > (index < 3 ? 0.5 : 1) }
    looks.each do |look|
      row = look.row
      assert_operator row[:running] + row[:ready] + row[:suspended], :>=, look.cpu * 0.98, row[:name]
      assert_operator row[:running], :>=, look.cpu * 0.7, row[:name] if look.cpu > 0.2
      assert_includes look.lived, row[:running] + row[:ready] + row[:suspended], row[:name]
    end
  end
end
