# frozen_string_literal: true

require "harness/trap_test"

# Trap: other Ractors have a GVL of their own and fire the same events.
class RactorTest < Harness::TrapTest
  def setup
    super
    $VERBOSE = nil # Ractors are announced as experimental
  end

  # One after the other: where several compute at once stock Ruby 3.4 hangs, now and then, most of all when they have threads.
  test_under Harness::Modes::ALL.keys, "ractors sleep and compute beside the scheduled threads" do
    beside_ractors { Ractor.new { 20.times { sleep 0.001 }; count = 0; 400_000.times { count += 1 }; count } }
  end

  test_under Harness::Modes::FAIR, "ractors with threads compute beside the scheduled threads" do
    beside_ractors { Ractor.new { Thread.new { count = 0; 400_000.times { count += 1 }; count }.value } }
  end

  test_under Harness::Modes::PREEMPTING, "ractors that come and go do not disturb the waking threads" do
    events = nil
    numbers = nil
    beside_cpu_threads(2) do
      beside_io_threads(2, pause: 0.002) do |threads|
        events = Harness::VMEvents.record do
          numbers = threads.map { |thread| VMFixture.number_of(thread) }
          10.times { value_of(Ractor.new { 50_000.times { nil } }) }
          sleep 0.5
        end
      end
    end
    waits = numbers.flat_map { |number| events.of(number).waits }
    refute_empty waits
    assert_operator percentile(waits, 0.9), :<, 0.05 if Headway.policy == :fair
  end

  # Ractors share native threads, here a single one: who waits for that one doesn't wait for our GVL, and nobody makes way for it.
  def test_ractors_that_have_yet_to_run_keep_nobody_waiting
    run = Harness::RubyProcess.eval(<<~RUBY, env: { "RUBY_MAX_CPU" => "1" })
      $VERBOSE = nil
      require "headway"
      Headway.start
      8.times { Ractor.new { 3_000_000.times { nil } } }
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 1
      nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
      print Headway.stats[:process].values_at(:threads, :parks).inspect
      $stdout.flush
      exit!(0) # Ruby itself may wait for Ractors that compute
    RUBY
    assert run.success?, run
    assert_equal "[1, 0]", run.out, run
  end

  # Headway is the main Ractor's; asked from elsewhere it says so instead of breaking.
  def test_another_ractor_cannot_start_it
    ractor = Ractor.new do
      Headway.start
    rescue Exception => error # rubocop:disable Lint/RescueException
      error.class
    end
    answer = value_of(ractor)
    assert_includes [Ractor::UnsafeError, Ractor::IsolationError, false], answer
  end

  # What forks wait for, reports of metrics under way, is the main one's, too. Here none is: a child is stuck for good, on stock Ruby, too,
  # where a thread of another Ractor has the VM's lock as it is made (to define a method, say). Until Ruby 4.1 forbids it.
  def test_another_ractor_may_fork_beside_a_reporter
    run = Harness::RubyProcess.eval(<<~RUBY)
      $VERBOSE = nil
      require "headway"
      Headway.start
      Headway::Metrics::Reporter.new(every: 3600, to: "nobody", last: false) { nil }.start
      ractor = Ractor.new do
        sleep 0.5 # until all others do
        Process.wait2(fork { exit!(7) }).last.exitstatus
      rescue Ractor::IsolationError => error
        error.message == "can not fork from non-main Ractors" ? 7 : raise
      end
      print(ractor.respond_to?(:value) ? ractor.value : ractor.take)
    RUBY
    assert_equal "7", run.out, run
  end

  private

  def beside_ractors(&ractor)
    beside_cpu_threads(2) do |counters|
      beside_io_threads(3, pause: 0.001) do
        3.times { assert_equal 400_000, value_of(ractor.call) }
      end
      await("all to count") { counters.all?(&:positive?) }
    end
    await("the last one's exit") { Headway.stats[:process][:threads] == Thread.list.size }
  end

  def value_of(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take
end
