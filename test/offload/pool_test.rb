# frozen_string_literal: true

require "test_helper"
require "headway"
require "zlib"
require "offload/operations"
require "offload/select_scheduler"

# What a pool promises of any work, with a scheduler and without, on every Ruby.
class OffloadPoolTest < Minitest::Test
  include Operations

  def setup
    @pools = []
  end

  def teardown
    @pools.each(&:close)
  end

  def test_runs_work_elsewhere_and_returns_its_result
    pool = pool()
    assert_equal [42, false], pool.call(-> { [42, Thread.current == Thread.main] })
    assert_operator pool.stats[:ran], :>=, 1
    assert_equal 1, pool.stats[:workers]
  end

  def test_what_the_work_raises_arrives
    pool = pool()
    error = assert_raises(KeyError) { pool.call(-> { {}.fetch(:x) }) }
    assert_match(/key not found/, error.message)
    assert_raises(SystemExit) { pool.call(-> { exit 3 }) }
    assert_raises(NotImplementedError) { pool.call(-> { raise NotImplementedError }) }
    assert_equal 1, pool.call(-> { 1 })
  end

  # Only the VM's own operation of a method that closes closes a descriptor, and is done here where no worker has done it.
  def test_work_that_fails_while_something_is_closed_is_not_run_again
    pool = pool()
    calls = 0
    upload = Object.new
    upload.define_singleton_method(:write) { |_| pool.call(-> { raise "refused #{calls += 1}" }) }
    assert_equal "refused 1", assert_raises(RuntimeError) { Zlib::GzipWriter.new(upload).close }.message
    assert_equal 1, calls
  end

  def test_no_more_workers_than_allowed_and_no_more_than_needed
    pool = pool(workers: 3)
    20.times do
      pool.call(-> { nil })
      await_idle_workers(pool)
    end
    assert_equal 1, pool.stats[:workers]
    running = most = 0
    lock = Mutex.new
    gate = Thread::Queue.new
    work = lambda do
      lock.synchronize { most = [most, running += 1].max }
      gate.pop
      lock.synchronize { running -= 1 }
    end
    threads = Array.new(12) { Thread.new { pool.call(work.dup) } }
    sleep 0.002 until running == 3 && pool.stats[:queued] == 9
    12.times { gate << true }
    threads.each(&:join)
    assert_equal 3, most
    assert_equal 3, pool.stats[:workers]
  end

  def test_a_full_queue_inline
    pool, release = busy_pool(full: :inline)
    here = Thread.current
    assert_same here, pool.call(-> { Thread.current })
    assert_equal 1, pool.stats[:full]
    assert_equal 1, pool.stats[:inline]
    release.call
  end

  def test_a_full_queue_raises
    pool, release = busy_pool(full: :raise)
    error = assert_raises(Headway::OffloadPool::FullError) { pool.call(-> { flunk }) }
    assert_match(/queue of 1/, error.message)
    release.call
  end

  def test_a_full_queue_is_waited_for
    pool, release = busy_pool(full: :wait)
    waiting = Thread.new { pool.call(-> { :in_the_end }) }
    Thread.pass until waiting.stop?
    assert waiting.alive?
    release.call
    assert_equal :in_the_end, waiting.value
  end

  def test_the_deadline_of_work_that_never_ran
    pool, release = busy_pool(full: :wait, queue: 2, deadline: 0.05)
    ran = false
    error = assert_raises(Headway::OffloadPool::DeadlineError) { pool.call(-> { ran = true }) }
    assert_match(/never ran/, error.message)
    release.call
    pool.close
    refute ran
    assert_equal 1, pool.stats[:withdrawn]
  end

  # As long as all workers were at something long, a queue filled up with what nobody waited for any more.
  def test_who_is_given_up_leaves_a_place_in_the_queue
    %i[raise inline wait].each do |full|
      pool, release = busy_pool(full: full, queue: 3) # one of the places is taken
      5.times { assert_match(/never ran/, assert_raises(Headway::OffloadPool::DeadlineError, full) { pool.run(deadline: 0.02) { flunk } }.message) }
      assert_equal [5, 1, 0], pool.stats.values_at(:withdrawn, :queued, :full)
      waiting = Array.new(2) { |number| Thread.new { pool.run { number } } }
      Thread.pass until pool.stats[:queued] == 3
      release.call
      assert_equal [0, 1], waiting.map(&:value)
      pool.close
      assert_equal [4, 0], pool.stats.values_at(:ran, :queued)
    end
  end

  def test_a_place_that_was_given_up_is_one_place
    pool, release = busy_pool(full: :raise, queue: 2)
    2.times { assert_raises(Headway::OffloadPool::DeadlineError) { pool.run(deadline: 0.02) { flunk } } }
    waiting = Thread.new { pool.run { :done } }
    Thread.pass until pool.stats[:queued] == 2
    assert_raises(Headway::OffloadPool::FullError) { pool.run { flunk } }
    release.call
    assert_equal :done, waiting.value
  end

  def test_the_deadline_of_a_place_in_the_queue
    pool, release = busy_pool(full: :wait, deadline: 0.05)
    assert_raises(Headway::OffloadPool::DeadlineError) { pool.call(-> { flunk }) }
    release.call
  end

  def test_the_deadline_of_work_that_can_be_stopped
    pool = pool(deadline: 0.05)
    stopped = false
    work = lambda do
      sleep 30
    ensure
      stopped = true
    end
    error = assert_raises(Headway::OffloadPool::DeadlineError) { until_begun { pool.call(work) } }
    assert_match(/stopped .* 0.05 s/, error.message)
    assert stopped
  end

  def test_work_that_cannot_be_stopped_has_its_result_after_the_deadline
    pool = pool(deadline: 0.02)
    work = lambda do
      sleep 30
    rescue Headway::OffloadPool::Cancelled
      :late
    end
    assert_equal :late, until_begun { pool.call(work) }
    assert_equal 1, pool.stats[:late]
  end

  def test_an_exception_interrupts_the_work_and_goes_on
    pool = pool()
    stopped = false
    begun = Thread::Queue.new
    thread = Thread.new { pool.call(-> { begin begun << true; sleep 30 ensure stopped = true end }) } # rubocop:disable Style/Semicolon
    thread.report_on_exception = false
    begun.pop
    thread.raise(IOError, "enough")
    assert_equal "enough", assert_raises(IOError) { thread.join }.message
    assert stopped
    assert_equal 1, pool.stats[:cancelled]
  end

  def test_an_exception_waits_for_work_that_cannot_be_stopped
    pool = pool()
    work = Stubborn.new
    thread = Thread.new { pool.call(work) }
    thread.report_on_exception = false
    work.begun.pop
    thread.raise(IOError, "enough")
    work.told.pop
    assert_nil thread.join(0.05)
    work.release
    assert_raises(IOError) { thread.join }
    assert work.ended?
    assert_equal 1, pool.stats[:cancelled_but_ran]
    assert_equal 7, pool.call(-> { 7 })
  end

  def test_of_several_exceptions_the_gravest_goes_on
    { [IOError, Interrupt] => Interrupt, [Interrupt, IOError] => Interrupt, [IOError, KeyError] => IOError }.each do |raised, expected|
      pool = pool()
      fiber_error = nil
      SelectScheduler.run do
        work = Stubborn.new
        fiber = Fiber.schedule do
          pool.run { work.call }
        rescue Exception => fiber_error
          nil
        end
        work.begun.pop
        raised.each { |error| fiber.raise(error, "now") }
        work.release
        sleep 0.002 while fiber.alive?
      end
      assert_instance_of expected, fiber_error
    end
  end

  def test_a_scheduler_that_raises_at_each_turn
    pool = pool()
    SelectScheduler.run do
      work = Stubborn.new
      fiber = Fiber.schedule do
        pool.run { work.call }
      rescue IOError
        nil
      end
      work.begun.pop
      raises = 0
      while fiber.alive?
        fiber.raise(IOError, "again")
        raises += 1
        work.release if raises > 1000
        Thread.pass if (raises % 100).zero?
      end
      assert work.ended?
      assert_operator raises, :>, 1000
    end
  end

  def test_kills_of_threads_and_fibers_wait_too
    pool = pool()
    work = Stubborn.new
    thread = Thread.new { pool.call(work) }
    work.begun.pop
    thread.kill
    work.told.pop
    assert_nil thread.join(0.05)
    work.release
    thread.join
    assert work.ended?
    work = Stubborn.new
    SelectScheduler.run do
      fiber = Fiber.schedule { pool.run { work.call } }
      work.begun.pop
      fiber.kill
      work.told.pop
      assert fiber.alive?
      work.release
      sleep 0.002 while fiber.alive?
    end
    assert work.ended?
  end

  def test_a_killed_worker_is_replaced
    pool = pool(workers: 1)
    victim = pool.call(-> { Thread.current })
    victim.kill
    victim.join
    refute_same victim, pool.call(-> { Thread.current })
    begun = Thread::Queue.new
    thread = Thread.new { pool.call(-> { begun << Thread.current; sleep 30 }) } # rubocop:disable Style/Semicolon
    thread.report_on_exception = false
    victim = begun.pop
    queued = Thread.new { pool.call(-> { :after_it }) }
    sleep 0.002 until pool.stats[:queued] == 1
    victim.kill
    assert_match(/killed/, assert_raises(Headway::OffloadPool::WorkerError) { thread.join }.message)
    assert_equal :after_it, queued.value
    assert_equal 2, pool.call(-> { 2 })
  end

  def test_close_waits_for_work_under_way_and_in_the_queue
    pool = pool(workers: 1)
    done = []
    gate = Thread::Queue.new
    threads = Array.new(3) { |i| Thread.new { pool.call(-> { gate.pop; done << i }) } } # rubocop:disable Style/Semicolon
    sleep 0.002 until pool.stats[:queued] == 2
    closing = Thread.new { pool.close }
    assert_nil closing.join(0.05)
    3.times { gate << true }
    closing.join
    assert_equal 3, done.size
    threads.each(&:join)
    assert_equal 0, pool.stats[:workers]
    assert_nil pool.close
    assert pool.closed?
  end

  def test_blocks_that_close_their_pool_wait_for_none_of_its_workers
    pool = pool(workers: 3)
    gate = Thread::Queue.new
    closing = Thread::Queue.new
    working = Thread.new { pool.run { gate.pop } }
    closers = Array.new(2) { Thread.new { pool.run { closing.pop && pool.close } } }
    sleep 0.002 until closing.num_waiting == 2 && gate.num_waiting == 1
    2.times { closing << true }
    assert_equal closers, closers.map { |closer| closer.join(10) }
    gate << :worked
    assert_equal :worked, working.value
  end

  def test_a_fork_starts_afresh
    pool = pool(workers: 1)
    release = Thread::Queue.new
    thread = Thread.new { pool.call(-> { release.pop }) }
    started(pool)
    assert_equal "5 1", in_child { "#{pool.call(-> { 5 })} #{pool.stats[:ran]}" }
    release << true
    thread.join
  end

  def test_a_fiber_that_waits_across_a_fork_is_told
    pool = pool(workers: 1)
    outcome = SelectScheduler.run do
      work = Stubborn.new
      fiber = Fiber.schedule { pool.run { work.call } } # in the parent it just ends
      work.begun.pop
      outcome = in_child do
        fiber.raise(IOError) # it waits for nothing any more
        "left"
      rescue Headway::OffloadPool::ForkError, IOError => error
        error.class.name
      end
      work.release
      sleep 0.002 while fiber.alive?
      outcome
    end
    assert_includes %w[IOError Headway::OffloadPool::ForkError], outcome
  end

  def test_values_that_mean_nothing
    { { workers: 0 } => /workers is 0: give a whole number from 1/, { workers: 1.5 } => /workers is 1.5/, { queue: -1 } => /queue is -1/,
      { queue: 10**20 } => /queue is 100000000000000000000: give a whole number from 1 to 2147483647/,
      { full: :drop } => /full is :drop: give inline, wait or raise/, { deadline: 0 } => /deadline is 0: give seconds above 0/,
      { mode: "perhaps" } => /mode is "perhaps": give adaptive, always or never/ }.each do |options, message|
      assert_match(message, assert_raises(ArgumentError) { Headway::OffloadPool.new(**options) }.message)
    end
    assert_match(/can't be called/, assert_raises(ArgumentError) { pool.call(3) }.message)
    assert_match(/no block/, assert_raises(ArgumentError) { pool.run }.message)
  end

  def test_the_environment_overrides_the_mode
    before = ENV.fetch("HEADWAY_OFFLOAD", nil)
    ENV["HEADWAY_OFFLOAD"] = "never"
    assert_equal :never, pool(mode: :always).mode
    assert_same Thread.current, pool(mode: :always).run { Thread.current }
    ENV["HEADWAY_OFFLOAD"] = "sometimes"
    error = assert_raises(ArgumentError) { Headway::OffloadPool.new }
    assert_equal 'HEADWAY_OFFLOAD is "sometimes": give adaptive, always or never', error.message
  ensure
    ENV["HEADWAY_OFFLOAD"] = before
  end

  # Each operation and each block is in one of them.
  def test_the_figures_add_up
    pool, release = busy_pool(full: :inline)
    2.times { pool.run { 1 } }
    pool.call(-> { pool.run { 2 } })
    assert_equal [4, 4], pool.stats.values_at(:inline, :full)
    release.call
    assert_equal 6, pool.stats.values_at(:ran, :inline).sum
    assert_equal 2, pool.run { pool.run { 2 } }
    assert_equal [3, 5, 0], pool.stats.values_at(:ran, :inline, :withdrawn)
  end

  def test_what_is_refused_is_not_given_up
    pool, release = busy_pool(full: :raise)
    assert_raises(Headway::OffloadPool::FullError) { pool.run { 1 } }
    release.call
    pool.close
    assert_raises(Headway::OffloadPool::ClosedError) { pool.run { 1 } }
    assert_equal [1, 0], pool.stats.values_at(:full, :withdrawn)
  end

  # What a stack still has by chance is alive, too.
  def test_a_worker_that_idles_keeps_nothing_of_the_job_before
    run = Harness::RubyProcess.eval(<<~RUBY, limit: 60)
      require "headway"
      class Result; end
      pool = Headway::OffloadPool.new(workers: 16, mode: :always)
      Array.new(16) { Thread.new { pool.run { sleep(0.2) && Result.new } && nil } }.each(&:join)
      overwrite = ->(depth) { depth.zero? ? nil : [depth.to_s, overwrite.(depth - 1)] }
      overwrite.(1000)
      3.times { GC.start }
      p [pool.stats[:ran], ObjectSpace.each_object(Result).count]
    RUBY
    ran, alive = run.out.scan(/\d+/).map(&:to_i)
    assert_equal 16, ran, run
    assert_operator alive, :<, 8
  end

  # The VM's own operations are procs without a source, too.
  def test_a_method_may_be_called_again_and_again
    work = Process.method(:pid).to_proc
    assert_equal [Process.pid] * 2, Array.new(2) { pool.call(work) }
  end

  def test_use_after_close
    pool = pool()
    pool.close
    assert_raises(Headway::OffloadPool::ClosedError) { pool.call(-> { 1 }) }
    assert_raises(Headway::OffloadPool::ClosedError) { pool.run { 1 } }
  end

  def test_a_process_ends_with_work_under_way
    run = Harness::RubyProcess.eval(<<~RUBY, limit: 20)
      require "headway"
      pool = Headway::OffloadPool.new
      3.times { Thread.new { pool.call(-> { sleep }) } }
      Thread.new { Headway.offload { sleep } }
      sleep 0.01 until pool.stats[:workers] + pool.stats[:queued] >= 3
      puts "end"
    RUBY
    assert run.success?, run.to_s
    assert_equal "end\n", run.out
  end

  private

  def pool(**options)
    Headway::OffloadPool.new(mode: :always, **options).tap { |pool| @pools << pool }
  end

  # One worker that is busy until released, and a queue of one that is full, or of more with one in it.
  def busy_pool(**options)
    pool = pool(workers: 1, **{ queue: 1 }.merge(options), deadline: nil)
    gate = Thread::Queue.new
    threads = [Thread.new { pool.call(-> { gate.pop }) }]
    started(pool)
    threads << Thread.new { pool.call(-> { gate.pop }) }
    sleep 0.002 until pool.stats[:queued] == 1
    pool.instance_variable_set(:@deadline, options[:deadline])
    [pool, -> { 2.times { gate << true } and threads.each(&:join) }]
  end

  # Waits until a worker has something to run.
  def started(pool)
    sleep 0.002 until pool.instance_variable_get(:@threads).values.any?
  end

  # Once more if the deadline came before a worker did.
  def until_begun
    yield
  rescue Headway::OffloadPool::DeadlineError => error
    error.message.include?("never ran") ? retry : raise
  end

  def in_child
    reader, writer = IO.pipe
    pid = fork do
      writer.write(yield)
      writer.close
      exit!(0)
    end
    writer.close
    Process.wait(pid)
    reader.read
  ensure
    reader.close
  end
end
