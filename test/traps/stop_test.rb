# frozen_string_literal: true

require "harness/trap_test"

# After a stop no hook, signal handler or native thread is left at work.
class StopTest < Harness::TrapTest
  URG = Signal.list["URG"]
  ROUNDS = 5 # at the least, however busy the machine is

  Harness::Modes::ALL.each do |mode, settings|
    define_method("test_nothing_is_left_after_a_stop_under_#{mode}") do
      warm_up
      before = traces
      3.times do
        assert Headway.start(**settings)
        beside_cpu_threads(2) { beside_io_threads(2) { sleep 0.1 } }
        assert Headway.stop
        refute Headway.stop
        refute_predicate Headway, :started?
        await("nothing left", details: -> { [before, traces] }) { traces == before } # threads that ended leave the process a little later
      end
    end

    # Only fair parks any; elsewhere each round takes the VM's slices of all of them, again and again.
    define_method("test_a_stop_while_threads_are_parked_under_#{mode}") do
      (settings[:policy] == :fair ? 4 : 1).times do
        beside_cpu_threads(4) do |counters|
          assert Headway.start(**settings.merge(quantum_ms: 5_000))
          sleep 0.06
          Headway.stop
          before = counters.dup
          await("every thread to run again") { counters.zip(before).all? { |after, start| after > start } }
        end
      end
    end
  end

  def test_start_and_stop_from_many_threads_under_load
    beside_cpu_threads(2) do |counters|
      beside_io_threads(2, pause: 0.001) do
        deadline = now + scale(2)
        Array.new(4) { |index| Thread.new { start_and_stop_until(deadline, Random.new(index)) } }.each(&:join)
        Headway.stop
        before = counters.dup
        await("every thread to run") { counters.zip(before).all? { |after, start| after > start } }
      end
    end
    assert_equal :default, VMFixture.disposition(URG)
    assert_equal 0, VMFixture.event_hook_count
  end

  def test_start_and_stop_while_threads_come_and_go
    deadline = now + scale(2)
    toggler = Thread.new { start_and_stop_until(deadline, Random.new(1)) }
    Array.new(5) { |index| Thread.new { compute(index * 0.001) } }.each(&:join) while now < deadline
    toggler.join
    assert Headway.start
    await("the last one's exit") { Headway.stats[:process][:threads] == Thread.list.size }
  end

  def test_settings_change_while_running
    beside_cpu_threads(3) do |counters|
      beside_io_threads(3, pause: 0.001) do
        assert Headway.start
        random = Random.new(1)
        quantum_ms = nil
        150.times do
          case random.rand(4)
          when 0 then Headway.policy = %i[fair quantum observe].sample(random: random)
          when 1 then Headway.quantum_ms = quantum_ms = random.rand(1..20)
          when 2 then Headway.start(preempt: %i[signal poll].sample(random: random))
          when 3 then Headway.thread(Thread.list.sample(random: random)).quantum_ms = [nil, 1, 50].sample(random: random)
          end
          sleep 0.002
        end
        Headway.policy = :fair
        before = counters.dup
        await("every thread to run") { counters.zip(before).all? { |after, start| after > start } }
        assert_equal [:fair, quantum_ms], [Headway.policy, Headway.quantum_ms]
      end
    end
  end

  private

  # The first thread and the first signal make the VM set things up for good. A thread that ended leaves the process a little later.
  def warm_up
    first = Thread.new { sleep 0.001; Thread.current.native_thread_id }.value
    await("its exit") { !native_thread_ids.include?(first) }
    Harness::VMEvents.record { sleep 0.001 }
  end

  def traces
    { disposition: VMFixture.disposition(URG), mask: VMFixture.blocked_signals, hooks: VMFixture.event_hook_count,
      native_threads: native_thread_ids.size }
  end

  def start_and_stop_until(deadline, random)
    rounds = 0
    while now < deadline || rounds < ROUNDS
      Headway.start(**Harness::Modes::ALL.values.sample(random: random).merge(quantum_ms: [1, 10, 100].sample(random: random)))
      sleep random.rand * 0.01
      Headway.stop if random.rand(2).zero?
      rounds += 1
    end
  end
end
