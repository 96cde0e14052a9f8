# frozen_string_literal: true

require "test_helper"
require "headway"
require "zlib"
require "offload/operations"
require "offload/select_scheduler"

# The native hook: what it declines runs as if there were no hook, what is long goes to a worker, and the loop goes on meanwhile.
# Ruby 3.3 never calls it.
class OffloadHookTest < Minitest::Test
  include Operations

  DATA = Random.new(2).bytes(2 << 20).freeze

  def test_from_ruby_code_it_runs_the_work_and_returns
    hooked(mode: :never) do |_pool, scheduler|
      ran = []
      scheduler.blocking_operation_wait(-> { ran << 1 })
      scheduler.public_send(:blocking_operation_wait, proc { ran << 2 })
      assert_equal [1, 2], ran
    end
  end

  def test_turned_may_be_told
    pool = Headway::OffloadPool.new
    assert_nil pool.turned
  ensure
    pool.close
  end

  if RUBY_VERSION >= "3.4"
    def test_results_are_right_whatever_is_chosen
      %i[never always adaptive].each do |mode|
        hooked(mode: mode) do
          200.times do
            assert_equal File.read(__FILE__).bytesize, File.size(__FILE__)
            refute File.exist?("#{__FILE__}.not")
            assert_includes Dir.children(__dir__), File.basename(__FILE__)
            assert_raises(Errno::ENOENT) { File.open("#{__FILE__}.not") }
          end
          assert_equal DATA, Zlib.inflate(Zlib.deflate(DATA))
        end
      end
    end

    def test_never_and_always
      hooked(mode: :never) do |pool|
        50.times { File.stat(__FILE__) }
        assert_equal [0, 50, 0], pool.stats.values_at(:ran, :inline, :workers)
      end
      hooked(mode: :always) do |pool|
        50.times do
          File.stat(__FILE__)
          await_idle_workers(pool)
        end
        assert_equal [50, 0, 1], pool.stats.values_at(:ran, :inline, :workers)
      end
    end

    def test_short_operations_run_inline
      hooked do |pool|
        5000.times { File.stat(__FILE__) }
        assert_operator pool.stats[:inline], :>, 4000
      end
    end

    def test_long_operations_run_on_workers_while_the_loop_turns
      hooked do |pool, scheduler|
        before = scheduler.turns
        Array.new(4) { Fiber.schedule { Zlib.deflate(DATA, Zlib::BEST_COMPRESSION) } }
             .each { |fiber| sleep 0.002 while fiber.alive? }
        assert_operator pool.stats[:ran], :>, 100
        assert_operator scheduler.turns - before, :>, 100
      end
    end

    def test_a_stream_of_short_operations_lets_other_fibers_run
      hooked do
        ticks = 0
        ended = false
        Fiber.schedule { (sleep 0; ticks += 1) until ended }
        20_000.times { File.stat(__FILE__) }
        ended = true
        assert_operator ticks, :>, 5
      end
    end

    # From 4.0 on the VM looks after it itself.
    TWICE = RUBY_VERSION >= "4.0" ? { RuntimeError => /already been executed/ } : { ArgumentError => /ran already/ }

    def test_an_operation_is_not_called_twice
      pool = Headway::OffloadPool.new(mode: :always)
      twice = lambda do |work|
        pool.call(work)
        error = assert_raises(*TWICE.keys) { pool.call(work) }
        assert_match TWICE.fetch(error.class), error.message
      end
      SelectScheduler.run(twice) { File.stat(__FILE__) }
    ensure
      pool.close
    end

    def test_a_scheduler_that_lost_its_pool_runs_inline
      hooked do |_pool, scheduler|
        scheduler.instance_variable_set(:@worker_pool, nil)
        assert File.stat(__FILE__).file?
      end
    end

    def test_a_scheduler_that_calls_the_pool_gets_the_hook
      pool = Headway::OffloadPool.new
      SelectScheduler.run(pool) do |scheduler|
        scheduler.instance_variable_set(:@worker_pool, pool)
        100.times { File.stat(__FILE__) }
        assert_includes scheduler.singleton_class.ancestors, Headway::OffloadPool::Hook
      end
    ensure
      pool.close
    end
  end

  private

  def hooked(**options)
    pool = Headway::OffloadPool.new(**options)
    SelectScheduler.run do |scheduler|
      scheduler.instance_variable_set(:@worker_pool, pool)
      scheduler.extend(Headway::OffloadPool::Hook)
      yield pool, scheduler
    end
  ensure
    pool.close
  end
end
