# frozen_string_literal: true

require "fiber_scheduler/scheduled"
require "harness/held_loop"
require "harness/measured"
require "headway/report"

# Turns of the loop that are too long.
class FiberSchedulerStallsTest < Minitest::Test
  include Scheduled
  include Harness::HeldLoop
  include Harness::Measured

  def test_a_turn_that_computes_is_seen_with_its_stack
    seen = []
    scheduler = looping(stall_ms: 20, on_stall: ->(stall) { seen << stall }) { Fiber.schedule { sleep(0.001) && hold_the_loop } }
    stall = seen.max_by(&:seconds)
    assert_operator stall.seconds, :>=, 0.2
    assert_match(/hold_the_loop|compute/, stall.stack.join("\n"))
    assert_equal seen.size, scheduler.stats[:stalls][:count]
    assert_equal stall.seconds, scheduler.stats[:stalls][:longest]
    assert_equal 0.02, scheduler.stats[:stalls][:threshold]
  end

  # Whoever is asked for its stack as it comes back from one sleep, to go into the next, isn't in one: none ends as the time is up.
  def test_a_turn_that_blocks_without_the_gvl_is_seen_too
    scheduler = looping(stall_ms: 20) { Fiber.schedule { sleep(0.001) && Fiber.blocking { 3.times { sleep 0.3 } } } }
    assert_match(/sleep/, scheduler.stats[:stalls][:last].max_by { |stall| stall[:seconds] }[:stack].first)
  end

  def test_a_loop_that_waits_does_not_stall
    measured do
      scheduler = looping(stall_ms: 200) { Fiber.schedule { sleep 0.5 } }
      assert_operator scheduler.stats[:stalls][:longest], :<, 0.5
    end
    assert_equal({ threshold: 60.0, count: 0, longest: 0.0, last: [] }, looping(stall_ms: 60_000) { Fiber.schedule { sleep 0.01 } }.stats[:stalls])
  end

  def test_nothing_is_watched_without_a_threshold
    assert_nil looping(stall_ms: nil) { Fiber.schedule { compute 0.1 } }.stats[:stalls]
  end

  def test_a_callback_that_cannot_be_called
    error = assert_raises(ArgumentError) { Headway::FiberScheduler.new(on_stall: 3) }
    assert_equal "on_stall is 3: give something to call, or nil", error.message
  end

  def test_a_callback_that_raises_is_a_failure_like_any_other
    error = assert_raises(RuntimeError) do
      looping(stall_ms: 10, on_stall: ->(_) { raise "callback" }) { Fiber.schedule { sleep(0.001) && compute(0.1) } }
    end
    assert_equal "callback", error.message
  end

  # The loop knows how long it may wait only when they have begun.
  def test_fibers_that_a_callback_starts_are_in_time
    told = Queue.new
    answer = nil
    looping(stall_ms: 20, on_stall: ->(_) { Fiber.schedule { sleep(0.01) && told << :in_time } }) do
      Fiber.schedule do
        sleep 0.001
        hold_the_loop
        answer = told.pop(timeout: 30)
      end
    end
    assert_equal :in_time, answer
  end

  # Else it would be told of what it takes itself, turn after turn.
  def test_what_a_callback_takes_is_no_stall
    told = 0
    looping(stall_ms: 50, on_stall: ->(_) { told += 1; sleep 0.1 }) do
      Fiber.schedule do
        sleep 0.001
        hold_the_loop
        30.times { Fiber.scheduler.yield }
      end
    end
    assert_includes 1..15, told
  end

  def test_only_the_last_stalls_are_kept
    scheduler = looping(stall_ms: 1) { Fiber.schedule { 40.times { sleep(0.001) && compute(0.003) } } }
    assert_operator scheduler.stats[:stalls][:count], :>=, 40
    assert_equal 32, scheduler.stats[:stalls][:last].size
  end

  def test_a_stall_is_marked_in_a_trace
    Dir.mktmpdir do |directory| # in a process of its own: recording is the process's
      path = File.join(directory, "stalls.headway")
      result = Harness::RubyProcess.eval(<<~RUBY, path)
        require "headway"
        Headway.start(policy: :observe, record: ARGV.first)
        #{HOLD}
        Fiber.set_scheduler(Headway::FiberScheduler.new(stall_ms: 20))
        Fiber.schedule { sleep(0.001); hold_the_loop }
        Fiber.scheduler.run
        Headway.stop
      RUBY
      assert_predicate result, :success?, result.to_s
      data = Headway::Trace.open(path).to_h
      assert_match(/^loop stall of \d+ ms: .*hold_the_loop/, data[:marks].map { |mark| mark[:name] }.join("\n"))
      assert_match(/ The event loop stood still .* in `.*hold_the_loop` /, Headway::Report::Headline.of(data))
    end
  end

  # Where no locale is set, such a path's bytes are none of its encoding's.
  def test_the_program_s_path_may_have_any_name
    Dir.mktmpdir do |directory|
      Dir.mkdir(directory = File.join(directory, "gr\u00FCn"))
      program = File.join(directory, "stalls.rb")
      File.write(program, <<~RUBY)
        require "headway"
        Headway.start(policy: :observe, record: File.join(__dir__, "out.headway"))
        Fiber.set_scheduler(Headway::FiberScheduler.new(stall_ms: 20))
        #{HOLD}
        Fiber.schedule { sleep(0.001); hold_the_loop }
        Fiber.scheduler.run
        puts Fiber.scheduler.stats[:stalls][:count].positive?
        Headway.stop
      RUBY
      result = Harness::RubyProcess.run(program, env: { "LC_ALL" => "C" })
      assert_equal ["true\n", ""], [result.out, result.err]
      marks = Headway::Trace.open(File.join(directory, "out.headway")).to_h[:marks].map { |mark| mark[:name] }
      assert_includes marks.join("\n").b, "\u00FC".b
    end
  end

  # Watches come and go while others are looked at.
  def test_many_loops_are_watched_at_once
    threads = Array.new(8) do
      Thread.new { Array.new(5) { looping(stall_ms: 1) { Fiber.schedule { sleep(0.001) && compute(0.003) } }.stats[:stalls][:count] } }
    end
    assert_equal [true] * 40, threads.flat_map(&:value).map(&:positive?), "each loop's stall is counted"
  end

  # It might do anything, and what strikes there would be lost.
  def test_a_backtrace_of_the_program_s_own_is_not_called
    called = 0
    kind = Class.new(Thread) { define_method(:backtrace) { |*| called += 1 and [] } }
    scheduler = Headway::FiberScheduler.new(stall_ms: 20)
    kind.new { Fiber.set_scheduler(scheduler) && Fiber.schedule { sleep(0.001) && hold_the_loop } }.join
    assert_match(/hold_the_loop|compute/, scheduler.stats[:stalls][:last].max_by { |stall| stall[:seconds] }[:stack].join("\n"))
    assert_equal 0, called
  end

  # What a Ractor collects leaves it a job to run, and whoever runs one runs all that are due: there the loop's stack is looked at while
  # the loop goes on.
  def test_another_ractor_leaves_the_stack_alone
    result = Harness::RubyProcess.eval(<<~RUBY)
      $VERBOSE = nil
      Thread.prepend(Module.new { def backtrace(*) = Ractor.current == Ractor.main ? super : exit!(3) })
      require "headway" # which calls the method that it finds as it is loaded
      Ractor.new { loop { 20.times { IO.pipe }; Array.new(20_000) { Object.new } } }
      watch = Headway::Native::LoopWatch.new(Thread.current, 1_000_000)
      200.times { watch.turn; sleep 0.005; watch.idle }
      exit!(0) # Ruby itself may wait for a Ractor that computes
    RUBY
    assert_equal 0, result.status.exitstatus, result.to_s
  end

  # Nor is one that was thrown away in the midst of a turn looked at: its thread may be gone before it, and a Ractor may be who frees it.
  def test_watches_may_be_thrown_away
    result = Harness::RubyProcess.eval(<<~RUBY)
      $VERBOSE = nil
      require "headway"
      3.times { Ractor.new { loop { 50.times { IO.pipe }; GC.start(immediate_sweep: false); Array.new(2000) { Object.new } } } }
      now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
      ends = now.call + 3
      while now.call < ends
        20.times { Headway::Native::LoopWatch.new(Thread.new { nil }, 100_000).turn }
        deadline = now.call + 0.002
        nil while now.call < deadline
      end
      exit!(0) # Ruby itself may wait for a Ractor that computes
    RUBY
    assert_equal 0, result.status.exitstatus, result.to_s[0, 2000]
  end
end
