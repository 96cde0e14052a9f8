# frozen_string_literal: true

require "test_helper"
require "headway"
require "openssl"
require "timeout"
require "zlib"
require "offload/select_scheduler"

# Headway.offload { }: as if the block ran where it is written.
class OffloadBlockTest < Minitest::Test
  def teardown
    Headway::OffloadPool.default.close
  end

  def test_the_loop_goes_on
    ticks = 0
    SelectScheduler.run do
      ended = false
      Fiber.schedule { (sleep 0.005; ticks += 1) until ended }
      Headway.offload { sleep 0.001 until ticks > 5 } # else for ever
      ended = true
    end
    assert_operator ticks, :>, 5
  end

  def test_an_extension_that_never_asks
    key = -> { OpenSSL::KDF.pbkdf2_hmac("pass", salt: "salt", iterations: 1000, length: 32, hash: "sha256") }
    assert_equal key.call, SelectScheduler.run { Headway.offload { key.call } }
  end

  def test_without_a_scheduler_only_this_thread_waits
    refute_same Thread.current, Headway.offload { Thread.current }
  end

  def test_exceptions_arrive_with_both_backtraces
    error = assert_raises(KeyError) { Headway.offload { {}.fetch(:missing) } }
    assert(error.backtrace.first(3).any? { |line| line.include?("#{File.basename(__FILE__)}:#{__LINE__ - 1}") }, error.backtrace.inspect)
    assert(error.backtrace.any? { |line| line.include?(__method__.to_s) }, error.backtrace.inspect)
  end

  def test_an_exception_that_is_raised_again_does_not_grow
    error = IOError.new("again")
    sizes = Array.new(3) { assert_raises(IOError) { Headway.offload { raise error } }.backtrace.size }
    assert_equal 1, sizes.uniq.size
  end

  def test_the_cause_stays
    error = assert_raises(RuntimeError) do
      Headway.offload do
        raise KeyError, "first"
      rescue KeyError
        raise "second"
      end
    end
    assert_instance_of KeyError, error.cause
  end

  def test_throw
    assert_equal 5, catch(:done) { Headway.offload { throw :done, 5 } or flunk }
    assert_raises(UncaughtThrowError) { Headway.offload { throw :nobody } }
    assert_equal 6, (Headway.offload { catch(:inside) { throw :inside, 6 } })
  end

  def test_a_throw_that_another_thread_could_not_deliver_is_an_error
    thread = Thread.new { throw :out, 7 }.tap { |one| one.report_on_exception = false }
    assert_raises(UncaughtThrowError) { catch(:out) { Headway.offload { thread.value } } }
  end

  def test_break_next_and_return
    assert_equal 7, (Headway.offload { break 7 })
    assert_equal 8, (Headway.offload { next 8 })
    assert_raises(LocalJumpError) { returns }
  end

  def test_a_break_in_a_clause_of_the_block
    rescued = Headway.offload do
      raise IOError
    rescue IOError
      begin
        raise KeyError
      ensure
        break 7
      end
    end
    assert_equal 7, rescued
  end

  def test_a_break_of_a_proc_that_it_calls_is_not_its_own
    in_a_clause = proc do
      raise IOError
    rescue IOError
      break 5
    end
    [proc { break 5 }, in_a_clause].each do |foreign|
      assert_raises(LocalJumpError) { foreign.call }
      error = assert_raises(LocalJumpError) { Headway.offload { foreign.call } }
      assert_equal :break, error.reason
    end
  end

  # As with a thread that forks.
  def test_the_child_of_a_fork_without_a_block_ends_with_the_block
    statuses = ["fork", "fork or exit(3)", "fork or raise('x')", "fork or exit!(Headway.offload { Thread.new { 4 }.value })"].map do |block|
      result = Harness::RubyProcess.eval("require 'headway'; Process.wait(Headway.offload { #{block} }); print $?.exitstatus", limit: 20)
      assert_predicate result, :success?, result.to_s
      result.out
    end
    assert_equal %w[0 3 1 4], statuses
  end

  def test_nested
    assert_equal 9, (Headway.offload { Headway.offload { Headway.offload { 9 } } })
  end

  def test_fiber_storage_is_there_and_does_not_stay
    Fiber[:request] = "abc"
    assert_equal "abc", (Headway.offload { Fiber[:request] })
    Fiber[:request] = nil
    assert_nil(Headway.offload { Fiber[:request] })
  end

  def test_fiber_storage_of_one_block_is_not_seen_by_another
    Fiber[:left] = 1
    Headway.offload { Fiber[:set_there] = 2 }
    Fiber[:left] = nil
    assert_equal [nil, nil], (Headway.offload { [Fiber[:left], Fiber[:set_there]] })
  end

  def test_a_scheduler_of_the_block_ends_with_it
    ended = false
    Headway.offload { Fiber.set_scheduler(SelectScheduler.new) && Fiber.schedule { sleep(0.01) && ended = true } }
    assert ended
    assert_nil(Headway.offload { Fiber.scheduler })
  end

  def test_a_scheduler_of_the_block_ends_however_the_block_ends
    ended_by = []
    leave = { raise: -> { raise IOError }, throw: -> { throw :out } }
    leave.each do |name, how|
      catch(:out) do
        Headway.offload do
          Fiber.set_scheduler(SelectScheduler.new)
          Fiber.schedule { sleep(0.01) && ended_by << name }
          how.call
        end
      rescue IOError
        nil
      end
      assert_nil(Headway.offload { Fiber.scheduler })
    end
    Headway.offload do
      Fiber.set_scheduler(SelectScheduler.new)
      Fiber.schedule { sleep(0.01) && ended_by << :break }
      break
    end
    assert_nil(Headway.offload { Fiber.scheduler })
    assert_equal %i[raise throw break], ended_by
  end

  def test_a_timeout_in_the_block
    assert_raises(Timeout::Error) { Headway.offload { Timeout.timeout(0.02) { sleep 30 } } }
    assert_equal 1, (Headway.offload { 1 })
  end

  def test_in_a_signal_handler_it_runs_there
    ran_on = nil
    before = trap("USR1") { ran_on = Headway.offload { Thread.current } }
    Process.kill("USR1", Process.pid)
    sleep 0.002 until ran_on
    assert_same Thread.main, ran_on
  ensure
    trap("USR1", before || "DEFAULT")
  end

  def test_used_for_the_first_time_in_a_signal_handler
    program = 'trap("USR1") { print Headway.offload { :ran } }; Process.kill("USR1", Process.pid); sleep 0.002'
    assert_equal "ran", IO.popen([RbConfig.ruby, "-Ilib", "-rheadway", "-e", program], &:read)
  end

  def test_used_for_the_first_time_by_many_it_is_one_pool
    program = 'Array.new(8) { Thread.new { Headway.offload { sleep 0.01 } } }.each(&:join)
               print ObjectSpace.each_object(Headway::OffloadPool).count { |pool| pool.stats[:workers] > 0 }'
    assert_equal "1", IO.popen([RbConfig.ruby, "-Ilib", "-rheadway", "-e", program], &:read)
  end

  def test_a_fiber_that_is_stopped_stops_the_block
    log = []
    begun = false
    SelectScheduler.run do
      fiber = Fiber.schedule do
        Headway.offload do
          begun = true
          sleep 30
        ensure
          log << :block
        end
      rescue IOError
        log << :fiber
      end
      sleep 0.002 until begun
      fiber.raise(IOError, "stop")
      sleep 0.002 while fiber.alive?
    end
    assert_equal %i[block fiber], log
  end

  def test_a_deadline_in_whose_place_cleaning_up_raises_something
    pool = Headway::OffloadPool.new(workers: 1)
    assert_raises(Headway::OffloadPool::DeadlineError) do
      pool.run(deadline: 0.02) do
        sleep 30
      ensure
        raise Zlib::DataError, "data error"
      end
    end
    assert_equal 0, pool.stats[:late]
    assert_raises(Zlib::DataError) { pool.run(deadline: 30) { raise Zlib::DataError, "data error" } }
  ensure
    pool&.close
  end

  def test_a_deadline
    assert_raises(Headway::OffloadPool::DeadlineError) { Headway.offload(deadline: 0.02) { sleep 30 } }
    assert_raises(ArgumentError) { Headway.offload(deadline: -1) { nil } }
    assert_equal 1, (SelectScheduler.run { Headway.offload(deadline: Float::INFINITY) { 1 } })
  end

  def test_no_block
    assert_match(/no block/, assert_raises(ArgumentError) { Headway.offload }.message)
  end

  def test_many_at_once
    sums = SelectScheduler.run do
      sums = []
      fibers = Array.new(500) { |i| Fiber.schedule { sums << Headway.offload { i } } }
      sleep 0.002 while fibers.any?(&:alive?)
      sums
    end
    assert_equal (0...500).sum, sums.sum
  end

  private

  def returns
    Headway.offload { return 1 }
  end
end
