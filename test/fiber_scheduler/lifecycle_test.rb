# frozen_string_literal: true

require "fiber_scheduler/scheduled"

# How the loop begins and ends, and what a fiber's end does to the others.
class FiberSchedulerLifecycleTest < Minitest::Test
  include Scheduled

  def test_a_fiber_runs_at_once_until_it_waits
    order = []
    looping do
      Fiber.schedule { order << 1 && sleep(0) && order << 3 }
      order << 2
    end
    assert_equal [1, 2, 3], order
  end

  def test_a_fiber_may_start_fibers
    ended = []
    scheduled { 3.times { |outer| Fiber.schedule { Fiber.schedule { sleep(0.001) && ended << outer } && sleep(0.001) } } }
    assert_equal [0, 1, 2], ended.sort
  end

  # The loop runs next, and must come back.
  def test_who_raises_in_another_fiber_or_kills_it_goes_on
    log = []
    looping do
      victims = Array.new(3) { |number| Fiber.schedule { ensured(-> { log << number }) { sleep } } }
      Fiber.schedule do
        victims[0].raise(Headway::FiberScheduler::Stop)
        assert_same victims[1], victims[1].kill
        assert_raises(TypeError) { victims[2].raise(3) } # nothing runs, and nobody comes back
        assert_operator elapsed { sleep 0.03 }, :>=, 0.03
        log << :went_on
        victims[2].raise(Headway::FiberScheduler::Stop)
        assert_raises(FiberError) { victims[0].raise("dead") }
        log << :to_its_end
      end
    end
    assert_equal [0, 1, :went_on, 2, :to_its_end], log
  end

  def test_close_drains
    ended = 0
    scheduler = looping { |own| 5.times { Fiber.schedule { sleep(0.01) && ended += 1 } } && own.close }
    assert_equal 5, ended
    assert_predicate scheduler, :closed?
    scheduler.close # once more does nothing
  end

  def test_close_drains_in_a_rescue_clause_that_the_loop_began_in
    said = []
    thread = Thread.new do
      raise "first attempt"
    rescue RuntimeError
      [-> { Fiber.set_scheduler(nil) }, -> { Fiber.scheduler.close }].each_with_index do |close, number|
        Fiber.set_scheduler(Headway::FiberScheduler.new)
        Fiber.schedule { sleep(0.01) && said << number }
        close.call
      end
    end
    thread.join
    assert_equal [0, 1], said
  end

  def test_another_exception_in_such_a_clause_ends_the_fibers
    said = []
    assert_raises(IOError) do
      Thread.new do
        Thread.current.report_on_exception = false
        raise "rescued"
      rescue RuntimeError
        Fiber.set_scheduler(Headway::FiberScheduler.new)
        Fiber.schedule { ensured(-> { said << :stopped }) { sleep } }
        raise IOError, "on"
      end.join
    end
    assert_equal [:stopped], said
  end

  def test_a_fiber_that_raises_takes_nothing_else_down_and_is_not_forgotten
    ended = 0
    error = assert_raises(RuntimeError) do
      looping do
        Fiber.schedule { sleep(0.001) && raise("first") }
        Fiber.schedule { sleep(0.002) && raise("second") }
        5.times { Fiber.schedule { sleep(0.01) && ended += 1 } }
      end
    end
    assert_equal "first", error.message
    assert_equal 5, ended
  end

  def test_a_failed_fiber_is_reported_as_a_thread_is
    _, report = capture_io do
      assert_raises(RuntimeError) { looping { (Thread.current.report_on_exception = true) && Fiber.schedule { raise "seen" } && Thread.current.report_on_exception = false } }
    end
    assert_match(/terminated with exception \(report_on_exception is true\):\n.*seen \(RuntimeError\)/, report)
  end

  def test_on_error_takes_failures_over
    seen = []
    scheduler = looping(on_error: ->(error, fiber) { seen << [error.message, fiber.is_a?(Fiber)] }) { 3.times { |number| Fiber.schedule { raise number.to_s } } }
    assert_equal [["0", true], ["1", true], ["2", true]], seen
    assert_equal 3, scheduler.stats[:errors]
  end

  def test_an_on_error_that_cannot_be_called
    error = assert_raises(ArgumentError) { Headway::FiberScheduler.new(on_error: 3) }
    assert_equal "on_error is 3: give something to call, or nil", error.message
  end

  def test_an_on_error_that_raises_loses_nothing
    error = nil
    _, report = capture_io do
      error = assert_raises(IOError) { looping(on_error: ->(*) { raise "handler" }) { Fiber.schedule { raise IOError, "mine" } } }
    end
    assert_equal "mine", error.message
    assert_match(/mine \(IOError\).*handler \(RuntimeError\)/m, report)
  end

  def test_use_after_close
    error = nil
    looping do |scheduler|
      scheduler.close
      error = assert_raises(Headway::Error) { scheduler.fiber { nil } }
    end
    assert_equal "this scheduler is closed", error.message
  end

  def test_the_loop_is_run_on_its_own_fiber
    error = nil
    looping { |scheduler| Fiber.schedule { error = assert_raises(Headway::Error) { scheduler.run } } }
    assert_match(/fiber it began on/, error.message)
  end

  def test_a_stall_ms_that_is_no_time
    [0, -1, "50", Float::NAN].each do |value|
      error = assert_raises(ArgumentError) { Headway::FiberScheduler.new(stall_ms: value) }
      assert_includes error.message, "stall_ms is #{value.inspect}"
    end
  end

  def test_stats
    scheduler = looping { |own| 3.times { Fiber.schedule { sleep 0.001 } } && assert_equal(3, own.stats[:waiting]) }
    assert_equal [3, 0, 0], scheduler.stats.values_at(:fibers, :waiting, :errors)
    assert_operator scheduler.stats[:turns], :>, 0
  end

  def test_waiting_says_what_for
    looping do |scheduler|
      reader, writer = IO.pipe
      Fiber.schedule { reader.read }
      Fiber.schedule { sleep 0.001 }
      assert_equal [:sleep, reader], scheduler.waiting.values
      writer.close
    end
  end

  def test_a_killed_thread_ends_its_fibers
    ended = Thread::Queue.new
    running = Thread::Queue.new
    thread = Thread.new do
      Fiber.set_scheduler(Headway::FiberScheduler.new)
      reader, writer = IO.pipe
      Fiber.schedule { ensured(-> { ended << :asleep }) { sleep } }
      Fiber.schedule { ensured(-> { ended << :reading && writer.close }) { reader.read } }
      Fiber.schedule { sleep(0.001) && running << true }
      Fiber.scheduler.run
    end
    running.pop
    thread.kill.join
    assert_equal %i[asleep reading], Array.new(ended.size) { ended.pop }.sort
  end

  def test_an_exception_in_the_threads_body_ends_its_fibers
    ended = []
    error = assert_raises(IOError) do
      looping do
        Fiber.schedule { ensured(-> { sleep(0.001) && ended << :asleep }) { sleep } }
        raise IOError, "body"
      end
    end
    assert_equal ["body", [:asleep]], [error.message, ended]
  end

  def test_an_exit_in_a_fiber_ends_the_process_with_its_ensure_clauses
    result = process(<<~RUBY)
      Fiber.schedule { begin; sleep; ensure; sleep 0.001; puts "ensured"; end }
      Fiber.schedule { sleep 0.01; exit 3 }
    RUBY
    assert_equal [3, "ensured\n"], [result.status.exitstatus, result.out], result.to_s
  end

  def test_an_interrupt_ends_the_process_with_its_ensure_clauses
    result = process(<<~RUBY)
      Fiber.schedule { begin sleep; ensure sleep 0.001; puts "ensured"; end }
      looping = Thread::Queue.new
      Fiber.schedule { sleep 0.001; looping << true }
      Thread.new { looping.pop; Process.kill(:INT, Process.pid) }
    RUBY
    assert_equal "ensured\n", result.out, result.to_s
    assert_equal Signal.list["INT"], result.status.termsig, result.to_s
  end

  # In the selector's queue, which tells nobody whom it has.
  def test_an_exit_ends_fibers_that_wait_for_nothing_but_their_turn
    result = process(<<~RUBY)
      ends = ->(name, &work) { Fiber.schedule { begin loop(&work); ensure sleep 0.001; puts name; end } }
      ends.(:yields) { Fiber.scheduler.yield }
      ends.(:enumerates) { Enumerator.new { loop { Fiber.scheduler.yield } }.next }
      ends.(:starts) { Fiber.schedule { Fiber.scheduler.yield } }
      ends.(:breathes) { RUBY_VERSION < "3.4" ? sleep : File.stat("/") }
      victim = Fiber.schedule { loop { begin sleep; rescue IOError; end } }
      ends.(:raises) { victim.raise(IOError) }
      Fiber.schedule { sleep 0.05; exit 3 }
    RUBY
    assert_equal [3, %w[breathes enumerates raises starts yields]], [result.status.exitstatus, result.out.split.sort], result.to_s
  end

  def test_a_fiber_that_rescues_its_stop_and_what_its_ensure_clause_starts_run_to_their_ends
    said = []
    assert_raises(IOError) do
      looping do |scheduler|
        Fiber.schedule do
          scheduler.yield while true
        rescue Headway::FiberScheduler::Stop
          said << :rescued
          3.times { scheduler.yield }
          Fiber.schedule { sleep(0.001) && said << :started }
          sleep 0.01
          said << :to_its_end
        end
        raise IOError, "body"
      end
    end
    assert_equal %i[rescued started to_its_end], said
  end

  def test_a_fiber_that_has_not_begun_when_the_loop_ends_early_never_does
    begun = []
    assert_raises(IOError) do
      looping do
        Fiber.schedule { nil } # the loop begins here
        Enumerator.new { |yielder| yielder << Fiber.schedule { (begun << true) && sleep } }.next
        raise IOError, "body"
      end
    end
    assert_empty begun
  end

  # Two fibers are woken in one turn, and the first one leaves the loop.
  def test_who_was_woken_beside_one_that_left_the_loop_runs_when_it_goes_on
    said = []
    looping do |scheduler|
      first, second = Queue.new, Queue.new
      Fiber.schedule { first.pop and exit }
      Fiber.schedule { said << second.pop }
      Fiber.schedule { [first, second].each { |queue| queue << :woken } }
      begin
        scheduler.run
      rescue SystemExit
        said << :exit
      end
      Timeout.timeout(10) { scheduler.run }
    end
    assert_equal %i[exit woken], said
  end

  # Between marking the waker as queued and queueing it.
  def test_what_strikes_a_thread_that_wakes_a_fiber_loses_no_wake_up
    inside, struck, taken = Queue.new, Queue.new, Queue.new
    waker = Headway::FiberScheduler.const_get(:Waker)
    slow = Module.new do
      define_method(:queue?) do
        super().tap do
          next unless Thread.current[:slow]

          inside << true
          sleep 0.2
        end
      end
    end
    waker.prepend(slow)
    queue = Queue.new
    loop_thread = Thread.new do
      Fiber.set_scheduler(Headway::FiberScheduler.new)
      Fiber.schedule { 2.times { taken << queue.pop } }
    end
    await("a fiber that waits") { queue.num_waiting == 1 }
    pusher = Thread.new do
      Thread.current[:slow] = true
      queue << 1
      sleep
    rescue IOError => error
      struck << error
    end
    inside.pop
    pusher.raise(IOError, "strikes")
    assert_equal "strikes", struck.pop(timeout: 10)&.message
    queue << 2
    assert_equal [1, 2], Array.new(2) { taken.pop(timeout: 10) }
  ensure
    loop_thread&.kill
  end

  # No mask keeps it out.
  def test_a_fiber_that_a_signal_s_handler_starts_while_the_loop_sorts_its_timers_is_woken
    result = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      Fiber.set_scheduler(Headway::FiberScheduler.new)
      handled = false
      handler = -> { handled ||= Fiber.schedule { sleep(0.01) && puts("woken") } }
      IO::Event::PriorityHeap.prepend(Module.new { define_method(:concat) { |timers| super(timers).tap { handler.call } } })
      Fiber.schedule { sleep 0.001 }
    RUBY
    assert_equal "woken\n", result.out, result
  end

  def test_the_loop_is_an_interactive_thread_however_busy_it_is
    result = process(<<~RUBY)
      Headway.start
      compute = -> { stop = Process.clock_gettime(1) + 0.05; nil while Process.clock_gettime(1) < stop }
      Fiber.schedule { sleep 0.001; compute.call; print Headway.thread.batch? }
      Fiber.scheduler.run
      20.times { compute.call unless Headway.thread.batch? }
      print Headway.thread.batch?
    RUBY
    assert_equal "falsetrue", result.out, result.to_s
  end

  def test_a_failed_fiber_fails_the_process
    result = process(%(Fiber.schedule { sleep 0.01; raise "lost?" }))
    refute_predicate result, :success?
    assert_match(/lost\? \(RuntimeError\)/, result.err)
  end

  # As from Ruby 4.0 on: it has no scheduler.
  def test_a_forked_child_leaves_its_parents_fibers_behind
    result = process(<<~RUBY)
      reader, writer = IO.pipe
      ended = Thread::Queue.new
      3.times { |number| Fiber.schedule { ended.pop; $stdout.syswrite("parent \#{number}\n") } }
      Fiber.schedule { Headway.offload { ended.pop } }
      Fiber.schedule do
        pid = fork do
          sleep 0.01
          IO.select(nil, nil, nil, 0.01)
          system("true")
          value = Headway.offload { Thread.new { 5 }.value } # another thread wakes us
          Fiber.set_scheduler(Headway::FiberScheduler.new)
          Fiber.schedule { sleep 0.01; writer.syswrite("child \#{value}\n") }
        end
        Process.wait(pid)
        $stdout.syswrite(reader.readpartial(100) + "status \#{$?.exitstatus}\n")
        ended.close
      end
    RUBY
    assert_equal "child 5\nstatus 0\nparent 0\nparent 1\nparent 2\n", result.out, result.to_s
  end

  def test_a_daemon_is_not_made_in_a_fiber
    results = scheduled { [-> { Process.daemon }, -> { Enumerator.new { Process.daemon }.next }].map { |daemon| assert_raises(Headway::Error, &daemon) } }
    results.each { |error| assert_match(/\AProcess.daemon in a fiber/, error.message) }
  end

  # Ruby 4.0 takes the scheduler from a daemon, as from any forked child.
  def test_a_daemon_goes_on_with_the_fibers
    return if RUBY_VERSION >= "4"

    IO.pipe do |reader, writer|
      process(<<~RUBY, pass: { 9 => writer })
        out = IO.for_fd(9)
        2.times { |number| Fiber.schedule { sleep 0.05; out.syswrite("\#{number}\n"); out.syswrite(Headway.offload { sleep 0.01; "offloaded\n" }) } }
        Process.daemon
        out.syswrite("daemon\n")
      RUBY
      writer.close
      assert_equal %w[0 1 daemon offloaded offloaded], reader.readlines(chomp: true).sort
    end
  end

  def test_without_the_gem_the_error_names_it
    result = Harness::RubyProcess.eval(<<~RUBY, "--disable-gems", env: { "RUBYOPT" => nil, "RUBYLIB" => nil })
      require "headway"
      begin
        Headway::FiberScheduler
      rescue Headway::Error => error
        puts error.message
      end
    RUBY
    assert_match(/needs the gem io-event/, result.out, result.to_s)
  end

  def test_nothing_is_said_of_what_the_vm_calls_experimental
    result = process('Fiber.schedule { IO.pipe { |reader, writer| writer << "x" and print reader.readpartial(1) } }; Fiber.set_scheduler(nil)')
    assert_equal ["x", ""], [result.out, result.err]
  end

  private

  def ensured(last)
    yield
  ensure
    last.call
  end

  def process(code, **options)
    Harness::RubyProcess.eval("require 'headway'; Fiber.set_scheduler(Headway::FiberScheduler.new)\n#{code}", limit: 20, **options)
  end
end
