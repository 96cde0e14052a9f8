# frozen_string_literal: true

require "fiber_scheduler/scheduled"

# What a wait that was given up leaves behind: nothing.
class FiberSchedulerGivenUpTest < Minitest::Test
  include Scheduled

  Strike = Class.new(Exception)
  private_constant :Strike

  WAITS = {
    sleep: ->(_) { sleep 0.002 },
    queue: ->(_) { Queue.new.pop(timeout: 0.002) },
    io: ->(reader) { reader.wait_readable(0.002) },
    io_timeout: ->(reader) { (reader.timeout = 0.002) && reader.read(1) },
    timeout: ->(_) { Timeout.timeout(0.002) { sleep 0.001 } }
  }.freeze
  private_constant :WAITS

  # Of old, selectors took the process's new descriptor for the one they still had in mind.
  def test_a_process_is_waited_for_again
    ended = scheduled do
      pid = spawn("sleep 60")
      begin
        Timeout.timeout(0.01) { Process.wait(pid) }
      rescue Timeout::Error
        Process.kill(:TERM, pid)
      end
      Timeout.timeout(patience(10)) { Process.wait2(pid)[1].termsig }
    end
    assert_equal Signal.list["TERM"], ended
  end

  # A thread that fills a queue may be switched away between choosing who is woken and waking it.
  def test_a_wake_up_from_a_queue_that_nobody_waits_for_any_more
    times = []
    looping do |scheduler|
      fiber = Fiber.schedule do
        sleep 0.001
        times << elapsed { sleep 0.03 }
        scheduler.unblock(Thread::Queue.new, fiber)
        times << elapsed { sleep 0.03 }
      end
      Fiber.schedule { sleep(0.01) && scheduler.unblock(Thread::Queue.new, fiber) }
    end
    assert_equal 2, times.size
    assert_operator times.min, :>=, 0.03
  end

  # Wherever an exception from another thread may arrive: where a method or a block returns, and in those of the selector's timers.
  def test_no_timer_strikes_a_later_wait
    WAITS.each do |name, wait|
      struck = (1..).take_while do |number|
        struck, ready = waits_again_after_strike(number, wait)
        assert ready, "#{name}, struck at the place no. #{number}: the next wait ended early"
        struck
      end
      assert_operator struck.size, :>, 3, name.to_s
    end
  end

  private

  # @return [Array(Boolean, Boolean)] whether there is such a place, whether the fiber's next wait ended with what it waited for
  def waits_again_after_strike(number, wait)
    scheduled do
      reader, writer = IO.pipe
      struck = struck_at(number) { wait.call(reader) }
      reader.timeout = nil
      Fiber.schedule { sleep(0.005) && writer << "x" } # later than any timer of the wait before
      [struck, reader.wait_readable.equal?(reader)]
    ensure
      [reader, writer].each(&:close)
    end
  end

  def struck_at(number)
    fiber = Fiber.current
    passed = 0
    strikes = TracePoint.new(:line, :return, :b_return) do |point|
      raise Strike if Fiber.current.equal?(fiber) && place?(point) && (passed += 1) == number
    end
    strikes.enable { yield }
    false
  rescue Strike
    true
  rescue IO::TimeoutError
    false
  end

  def place?(point)
    point.path.end_with?("io/event/timers.rb") || (point.event != :line && point.path.match?(%r{fiber_scheduler/(blocking|inputs)\.rb\z}))
  end
end
