# frozen_string_literal: true

require "harness/held_loop"
require "harness/measured"
require "harness/recorder_test"
require "headway/report"
require "offload/select_scheduler"

# Event loops of others that stand still while something records.
class LoopsTest < Harness::RecorderTest
  include Harness::HeldLoop
  include Harness::Measured

  def test_what_keeps_the_loop_is_named
    trace = recorded { in_loop { sleep(0.001) && hold_the_loop } }
    assert_match(/\Aloop stall of \d+ ms: .*:\d+:in .*hold_the_loop/, stalls(trace).join("\n"))
    assert_match(/The event loop stood still .*hold_the_loop` \(.*\)\./, Headway::Report::Headline.of(trace))
  end

  def test_what_blocks_without_the_gvl_keeps_it_too
    trace = recorded { in_loop { sleep(0.001) && Fiber.blocking { 3.times { nap } } } }
    assert_match(/[#`]nap'/, stalls(trace).join("\n"))
  end

  def test_a_loop_that_waits_does_not_stand_still_and_an_enumerator_is_none
    measured do
      trace = recorded do
        in_loop { sleep 1 }
        generator = Enumerator.new { |yielder| loop { yielder << sleep(1) } }
        2.times { generator.next }
      end
      assert_operator stalls(trace).map { |name| name[/\d+/].to_i }.max.to_i, :<, 500, "milliseconds"
    end
  end

  def test_each_loop_in_its_own_thread_and_none_twice
    own = Headway::FiberScheduler.new
    trace = recorded do
      Array.new(3) { |i| Thread.new { in_loop { Thread.current.name = "loop-#{i}" and hold_the_loop } } }.each(&:join)
      Thread.new { Thread.current.name = "own" and Fiber.set_scheduler(own) and Fiber.schedule { sleep(0.001) && hold_the_loop } }.join
    end
    3.times { |i| assert_operator stalls_of("loop-#{i}", trace).size, :>=, 1 }
    assert_operator own.stats[:stalls][:count], :>=, 1
    assert_equal own.stats[:stalls][:count], stalls_of("own", trace).size
  end

  # Whose stalls are told is asked for each loop of a thread, not once.
  def test_one_loop_after_another_in_a_thread
    trace = recorded do
      [SelectScheduler.new, Headway::FiberScheduler.new, SelectScheduler.new].each_with_index do |scheduler, i|
        Fiber.set_scheduler(scheduler)
        Fiber.schedule { sleep(0.001) && hold_the_loop if i > 0 }
        Fiber.set_scheduler(nil)
      end
    end
    assert_equal 2, stalls(trace).grep(/hold_the_loop/).size, stalls(trace).inspect
  end

  # Nobody can tell its turns apart.
  def test_a_loop_in_a_fiber_that_is_not_blocking_leaves_no_turn_under_way
    measured do
      trace = recorded do
        Fiber.new(blocking: false) { loop_here { sleep 0.001 } }.resume
        sleep 1
        loop_here { sleep 0.001 }
      end
      assert_operator stalls(trace).map { |name| name[/\d+/].to_i }.max.to_i, :<, 500, "milliseconds"
    end
  end

  def test_a_fiber_that_selects_keeps_the_loop
    trace = recorded { in_loop { sleep(0.001) && Fiber.blocking { IO.select(nil, nil, nil, 0.2) } } }
    assert_match(/\Aloop stall of \d+ ms: .*loops_test/, stalls(trace).join("\n"))
  end

  def test_nobody_is_watched_any_more_after_the_end
    recorded do
      20.times { in_loop { sleep 0.001 } } # each in a thread of its own
      assert_operator watches.size, :<=, 2
    end
    assert_empty watches
  end

  def test_a_loop_that_begins_while_one_recording_ends_and_the_next_begins
    ran = program(<<~RUBY, "-I#{File.expand_path("..", __dir__)}")
      require "offload/select_scheduler"
      #{HOLD}
      module Begins
        def close
          super
          Begins.remove_method(:close)
          Headway::Recorder.start(file: FILE)
          SelectScheduler.run { sleep(0.001) && hold_the_loop }
        end
      end
      Headway::Recorder.start(file: FILE + ".first")
      SelectScheduler.run { sleep 0.001 }
      Headway.const_get(:Native)::LoopWatch.prepend(Begins)
      Headway::Recorder.stop
    RUBY
    assert_empty ran.err
    assert_match(/hold_the_loop/, stalls(analysis).join("\n"))
  end

  def test_a_forked_child_watches_its_own
    program(<<~RUBY, "-I#{File.expand_path("..", __dir__)}")
      require "offload/select_scheduler"
      #{HOLD}
      Headway::Recorder.start(file: FILE)
      SelectScheduler.run { sleep 0.001 }
      Process.wait(fork { SelectScheduler.run { sleep(0.001) && hold_the_loop } })
    RUBY
    assert_empty stalls(analysis)
    child, = files - ["out.headway"]
    assert_match(/hold_the_loop/, stalls(analysis(file(child))).join("\n"))
  end

  # What strikes where fibers switch is as good as anywhere.
  def test_nothing_that_is_raised_is_lost
    struck = 0
    recorded(:fair_signal) do
      scale(30).times do
        over = false # a loop that is struck itself runs its fibers to their end
        held = Thread.new { in_loop { sleep(0.0005) && compute(0.06) until over } }
        held.report_on_exception = false
        sleep 0.05 + (rand * 0.02)
        over = true
        held.raise(IOError, "out")
        held.join(20) or flunk "hangs"
      rescue IOError
        struck += 1
      end
    end
    assert_equal scale(30), struck
  end

  private

  def in_loop(&) = SelectScheduler.run(&)

  def loop_here(&)
    Fiber.set_scheduler(SelectScheduler.new)
    Fiber.schedule(&)
    Fiber.set_scheduler(nil)
  end

  def nap = sleep(0.4)

  def stalls(trace) = trace[:marks].map { |mark| mark[:name] }.grep(/\Aloop stall/)

  def stalls_of(name, trace)
    id = thread_named(name, from: trace)[:id]
    trace[:marks].select { |mark| mark[:thread] == id && mark[:name].start_with?("loop stall") }
  end

  def watches = Headway::Recorder.const_get(:Loops).instance_variable_get(:@watches)
end
