# frozen_string_literal: true

require "test_helper"
require "headway"
require "headway/fiber_scheduler"
require "offload/operations"

# What strikes a pool at the wrong moment: nothing hangs, nobody else is struck, and nobody's stack is written into once it is gone.
class OffloadStrikesTest < Minitest::Test
  include Operations

  # The VM kills each thread once as it ends, and waits for it.
  def test_a_process_ends_though_cleaning_up_takes_the_place_of_the_kill
    ["begin; sleep; ensure; raise 'cleaning up failed'; end", "loop { begin; sleep; ensure; break; end }; sleep 0.01",
     "Zlib::Deflate.deflate(DATA, 9)"].each do |block|
      run = Harness::RubyProcess.eval(<<~RUBY, limit: 60)
        require "headway"
        require "zlib"
        DATA = ("\\0" * (16 << 20)).freeze
        Thread.report_on_exception = false
        2.times { Thread.new { Headway.offload { #{block} } } }
        sleep 0.1
        exit 3
      RUBY
      assert_equal 3, run.status.exitstatus, "#{block}: #{run}"
    end
  end

  def test_a_worker_that_is_killed_in_vain_is_replaced
    pool = Headway::OffloadPool.new(workers: 1)
    worker = nil
    waiter = Thread.new { pool.run { begin; worker = Thread.current; sleep; ensure; raise KeyError, "cleaning up failed"; end } }
    waiter.report_on_exception = false
    sleep 0.001 until worker&.stop?
    worker.kill
    assert_raises(KeyError) { waiter.value }
    assert worker.join(30), "the worker goes on though it was killed"
    assert_equal 1, pool.run { 1 }
  ensure
    pool.close
  end

  # Then the place in the queue that is there is another job's.
  def test_a_job_that_a_worker_took_after_all_takes_no_place_back
    pool = Headway::OffloadPool.new(workers: 1)
    job = Headway::OffloadPool::Job.new(pool, -> { 1 }, nil, nil, false)
    pending = pool.instance_variable_get(:@pending)
    pending << :another
    job.run
    pool.send(:take_back, job)
    assert_equal 1, pending.size
  end

  # Nothing refers to the fibers any more, and the collector takes their stacks, in which the VM's operations write.
  def test_fibers_that_are_left_behind_keep_their_stacks_while_a_worker_has_their_operation
    run = Harness::RubyProcess.eval(<<~RUBY, limit: 120)
      require "headway/fiber_scheduler"
      require "zlib"
      Thread.report_on_exception = false
      data = ("\\0" * (8 << 20)).freeze
      pool = Headway::OffloadPool.new(workers: 3, mode: :always)
      30.times do
        thread = Thread.new do
          Fiber.set_scheduler(Headway::FiberScheduler.new(pool: pool))
          3.times { Fiber.schedule { Zlib::Deflate.deflate(data, 9) } }
        end
        sleep 0.02
        2.times { thread.raise("strike"); sleep 0.005 }
        thread.join rescue nil
        GC.start
        Array.new(40) { Fiber.new { text = "y" * 100; Fiber.yield; text } }.each(&:resume)
      end
      puts "survived"
    RUBY
    assert_equal "survived\n", run.out, run
  end

  # Who is woken for a free place and raised out just then takes the wake-up along.
  def test_a_place_in_the_queue_is_not_lost_with_who_is_given_up
    10.times do
      pool = Headway::OffloadPool.new(workers: 1, queue: 1, full: :wait)
      gate = Thread::Queue.new
      others = [Thread.new { pool.run { gate.pop } }]
      sleep 0.001 until gate.num_waiting == 1
      others << Thread.new { pool.run { 1 } }
      sleep 0.001 until pool.stats[:queued] == 1
      waiters = Array.new(6) { Thread.new { pool.run { :ran } } }.each { |thread| thread.report_on_exception = false }
      sleep 0.001 until at_the_queue(pool) == 6
      gate << 1
      waiters.first(5).each { |thread| thread.raise("given up") }
      assert waiters.last.join(30), "still waits: #{pool.stats}"
      (others + waiters).each { |thread| thread.join rescue nil } # rubocop:disable Style/RescueModifier
      counts = pool.stats
      assert_equal 8, counts[:ran] + counts[:withdrawn], counts
      pool.close
    end
  end

  if RUBY_VERSION >= "3.4" # 3.3 itself hangs or crashes at its next blocking call once a thread could not be made
    # As a process may have no more threads than its container's limit.
    def test_without_a_thread_it_runs_where_it_is
      run = Harness::RubyProcess.eval(<<~RUBY, limit: 30)
        require "headway/fiber_scheduler"
        Process::UID.change_privilege(65_534) if Process.uid == 0
        Process.setrlimit(:NPROC, 1, 1)
        begin
          Thread.new { nil }.join
          abort "a thread could be made"
        rescue ThreadError
          nil
        end
        %i[inline wait raise].each do |full|
          pool = Headway::OffloadPool.new(workers: 2, queue: 2, full: full, mode: :always)
          Fiber.set_scheduler(Headway::FiberScheduler.new(pool: pool, stall_ms: 50))
          3.times { Fiber.schedule { print File.stat("/").directory?, pool.run { 1 } } }
          Fiber.set_scheduler(nil)
          print pool.stats.values_at(:inline, :ran, :withdrawn, :queued, :full), "\\n"
        end
      RUBY
      assert_equal "true1true1true1[6, 0, 0, 0, 0]\n" * 3, run.out, run
      assert_match(/stalls of the loop aren't seen/, run.err)
    end
  end

  def test_a_loop_within_a_block_does_not_wait_for_its_own_worker
    pool = Headway::OffloadPool.new(workers: 1, mode: :always)
    thread = Thread.new do
      pool.run do
        Fiber.set_scheduler(Headway::FiberScheduler.new(pool: pool))
        answers = []
        Fiber.schedule { answers << File.stat("/").directory? << pool.call(-> { 2 }) << pool.run { 3 } }
        Fiber.set_scheduler(nil)
        answers
      end
    end
    assert thread.join(30), "waits for itself: #{pool.stats}"
    assert_equal [true, 2, 3], thread.value
  ensure
    pool.close
  end

  def test_several_exceptions_that_come_too_late_strike_nobody_else
    pool = Headway::OffloadPool.new(workers: 1)
    go = Thread::Queue.new
    first = Thread.new do
      pool.run do
        worker = Thread.current
        Thread.handle_interrupt(Exception => :never) do
          go.pop
          Thread.new { 5.times { |number| worker.raise("error #{number}") } }.join
        end
      end
    rescue RuntimeError => error
      error.message
    end
    sleep 0.001 until go.num_waiting == 1
    second = Thread.new { pool.run { :fine } }
    sleep 0.001 until pool.stats[:queued] == 1
    go << 1
    assert_equal ["error 0", :fine], [first.value, second.value]
  ensure
    pool.close
  end

  # With so many keys that it takes long to forget them.
  def test_what_strikes_as_a_block_ends_leaves_none_of_its_storage_behind
    pool = Headway::OffloadPool.new(workers: 1)
    storage = Array.new(100_000) { |number| [:"strikes_#{number}", number] }.to_h
    ended = Thread::Queue.new
    left = Array.new(5) do
      thread = Thread.new { Fiber.new(storage: storage) { pool.run { ended << 1 } }.resume }
      thread.report_on_exception = false
      ended.pop
      thread.raise("enough")
      thread.join rescue nil # rubocop:disable Style/RescueModifier
      pool.run { Fiber.current.storage.to_h.keys.grep(/strikes_/).size }
    end
    assert_equal [0] * 5, left
  ensure
    pool.close
  end

  # Debuggers and the like have Ruby code run, and exceptions come, between any two lines.
  def test_an_exception_between_any_two_lines_of_giving_up
    file = Headway::OffloadPool::Job.instance_method(:withdraw).source_location
    lines = File.readlines(file.first)
    range = (file.last..file.last + lines.drop(file.last).index { |line| line.match?(/\A {6}end$/) })
    range.each do |number|
      run = Harness::RubyProcess.eval(<<~RUBY, limit: 30)
        require "headway"
        pool = Headway::OffloadPool.new(workers: 1)
        gate = Queue.new
        Thread.new { pool.run { gate.pop } }
        Thread.pass until gate.num_waiting == 1
        thread = Thread.new { pool.run { 1 } }
        thread.report_on_exception = false
        Thread.pass until pool.stats[:queued] == 1 && thread.stop?
        struck = false
        TracePoint.new(:line) do |line|
          next if struck || line.lineno != #{number} || line.path != #{file.first.inspect}

          struck = true
          thread.raise("second")
        end.enable
        thread.raise("first")
        begin
          thread.join
        rescue RuntimeError => error
          print error.message
        end
        gate << 1
      RUBY
      assert_equal "first", run.out, "line #{number}: #{run}"
    end
  end

  # The shared worker is anybody's, whoever's need it was made for.
  def test_a_worker_has_nothing_of_who_needed_it_first
    pool = Headway::OffloadPool.new(workers: 1)
    group = ThreadGroup.new
    Thread.new do
      group.add(Thread.current)
      Thread.current.priority = -3
      pool.run { nil }
    end.join
    assert_equal [0, ThreadGroup::Default], pool.run { [Thread.current.priority, Thread.current.group] }
  ensure
    pool.close
  end

  def test_in_a_signal_handler_it_tells_its_figures_and_closes
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      pool = Headway::OffloadPool.new
      pool.run { 1 }
      trap("USR1") { print pool.stats[:ran], pool.close.inspect, Thread.list.size }
      Process.kill("USR1", Process.pid)
      sleep 0.1
    RUBY
    assert_equal "1nil1", run.out, run
  end
end
