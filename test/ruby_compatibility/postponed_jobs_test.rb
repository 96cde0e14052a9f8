# frozen_string_literal: true

require "harness/isolated_test"
require "harness/vm_events"
require "harness/workload"

# On which thread a postponed job runs, and what may happen to that thread meanwhile.
class PostponedJobsTest < Harness::IsolatedTest
  include Harness::Workload

  Run = Struct.new(:thread, :trap_pending, :blocked, :unblocks, :ns)

  LONG = 50 # seconds: only who calls the unblock function ends a block before that

  def setup = VMFixture.start_recording # numbers the threads

  def teardown = VMFixture.stop_recording

  def runs = VMFixture.job_runs.map { |row| Run.new(*row) }

  def number(thread = Thread.current) = VMFixture.number_of(thread)

  def test_a_trigger_runs_the_job_on_the_own_thread
    VMFixture.prepare_job(:note, 0, true)
    VMFixture.trigger
    check_interrupts
    assert_equal [number], runs.map(&:thread)
  end

  def test_a_trigger_from_a_native_thread_runs_the_job_on_the_holder
    VMFixture.prepare_job(:note, 0, true)
    holder = Thread.new do
      50.times { VMFixture.trigger_from_outside; check_interrupts }
      number
    end
    assert_equal [holder.value], runs.map(&:thread).uniq
  end

  def test_a_trigger_in_a_ready_hook_flags_the_thread_that_wakes_up
    VMFixture.prepare_job(:note, 0, true)
    beside_cpu_threads(1) do
      sleeper = Thread.new { 5.times { sleep 0.005 } }
      VMFixture.trigger_when_ready(sleeper)
      sleeper.join
      assert_includes runs.map(&:thread).uniq, number(sleeper)
      refute_includes runs.map(&:thread).uniq, number
    end
  end

  def test_a_signal_to_the_holder_runs_the_job_on_the_holder
    VMFixture.prepare_job(:note, 0, true)
    VMFixture.install_job_signal
    beside_cpu_threads(1) do |counters, (holder)|
      await("the holder") { counters.first.positive? } # before that it cannot be signalled
      20.times do
        sleep 0.001 # the holder computes from here until we have the GVL back
        VMFixture.signal_thread(holder, Signal.list["URG"])
      end
      await("jobs") { runs.size >= 10 }
      assert_equal [number(holder)], runs.map(&:thread).uniq
    end
  ensure
    VMFixture.remove_job_signal
  end

  # Each fiber has interrupt flags of its own, so a switch of fibers can hide a trigger.
  def test_a_trigger_waits_for_the_fiber_it_hit
    VMFixture.prepare_job(:note, 0, true)
    fiber = Fiber.new { VMFixture.trigger_and_yield_fiber }
    fiber.resume
    check_interrupts
    assert_empty runs
    fiber.resume
    assert_equal 1, runs.size
  end

  def test_intr_fail_declines_when_an_interrupt_is_pending
    assert VMFixture.nogvl_runs?(false)
    refute VMFixture.nogvl_runs?(true)
  end

  def test_a_trigger_does_not_interrupt_the_job_and_is_kept_for_after
    VMFixture.prepare_job(:block_after_trigger, 0.005, true)
    VMFixture.trigger
    check_interrupts
    assert_equal 2, runs.size
    assert runs.first.blocked, "the block was declined, so the trigger was not masked"
    assert_equal 0, runs.first.unblocks
  end

  def test_a_trap_does_not_decline_the_block_in_a_job_and_runs_after
    handled = 0
    trap("USR2") { handled += 1 }
    VMFixture.prepare_job(:block_after_signal, 0.005, true)
    VMFixture.trigger
    check_interrupts
    assert runs.first.blocked, "the block was declined, so the trap was not masked"
    await("trap") { handled == 1 }
  end

  def test_the_job_can_see_a_trap_the_same_interrupt_check_will_run
    handled = false
    trap("USR2") { handled = true }
    VMFixture.prepare_job(:block, 0.005, true)
    VMFixture.signal_and_trigger
    check_interrupts
    assert_equal [true], runs.map(&:trap_pending)
    assert runs.first.blocked, "the VM has taken the trap's flag already: nothing else warns the job"
    await("trap") { handled }
  end

  def test_check_trap_pending_is_true_from_the_signal_until_its_handler
    seen_inside = nil
    trap("USR2") { seen_inside = VMFixture.trap_pending? }
    refute VMFixture.trap_pending?
    Process.kill(:USR2, Process.pid)
    await("trap") { !seen_inside.nil? }
    refute seen_inside
    refute VMFixture.trap_pending?
  end

  def test_raise_into_a_blocked_job_is_not_lost
    150.times { |i| assert_equal "no. #{i}", interrupted_in_job { |thread| thread.raise("no. #{i}") } }
  end

  def test_kill_into_a_blocked_job_is_not_lost
    150.times { assert_equal :ended, interrupted_in_job(&:kill) }
  end

  def test_raise_kill_and_wakeup_call_the_unblock_function
    %i[raise kill wakeup].each do |interrupt|
      thread = thread_blocked_in_job(LONG)
      thread.public_send(interrupt)
      await("unblock") { !VMFixture.blocked_in_job? && runs.last.ns > 0 } # counted when the job has got the GVL back
      assert_operator runs.last.unblocks, :>, 0, interrupt
      assert_operator runs.last.ns, :<, LONG * 1e9
      thread.kill
    ensure
      thread.join rescue nil
    end
  end

  def test_a_signal_calls_the_unblock_function_of_the_main_thread
    handled = false
    trap("USR2") { handled = true }
    VMFixture.prepare_job(:block, LONG, true)
    sender = Thread.new do
      await("job") { VMFixture.blocked_in_job? }
      Process.kill(:USR2, Process.pid)
    end
    VMFixture.trigger
    check_interrupts
    sender.join
    await("trap") { handled }
    assert_operator runs.first.unblocks, :>, 0
    assert_operator runs.first.ns, :<, LONG * 1e9
  end

  def test_an_exception_out_of_a_job_is_swallowed
    VMFixture.prepare_job(:raise, 0, true)
    VMFixture.trigger
    check_interrupts
    assert_equal 1, runs.size
    assert_nil $!
  end

  def test_a_thread_blocked_in_a_job_looks_asleep_and_is_itself_again_after
    status = thread = nil
    await("a look while it is blocked", limit: LONG) do # which is over when the machine stops for so long just then
      thread&.kill&.join
      thread = thread_blocked_in_job(1)
      status = thread.status
      VMFixture.blocked_in_job?
    end
    assert_equal "sleep", status
    await("end of the job") { !VMFixture.blocked_in_job? }
    await("run") { thread.status == "run" }
  ensure
    thread.kill.join
  end

  private

  # A backward branch is where the VM looks for interrupts.
  def check_interrupts = 3.times { nil }

  def thread_blocked_in_job(seconds)
    VMFixture.prepare_job(:block, seconds, true)
    thread = Thread.new do
      VMFixture.trigger until runs.any?(&:blocked) # it doesn't block where its time slice has just ended, for one
      loop { nil }
    end
    thread.report_on_exception = false
    await("job") { VMFixture.blocked_in_job? }
    thread
  end

  # What became of a thread that was interrupted while its job blocked.
  def interrupted_in_job
    thread = thread_blocked_in_job(LONG)
    yield thread
    assert thread.join(patience(10)), "the interrupt was lost"
    :ended
  rescue RuntimeError => error
    error.message
  end
end
