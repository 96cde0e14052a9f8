# frozen_string_literal: true

require "fiber_scheduler/scheduled"
require "socket"

# IO.select under the scheduler.
class FiberSchedulerSelectTest < Minitest::Test
  include Scheduled

  def test_select_returns_what_is_ready
    first, _writer = pipe
    second, writer = pipe
    found = scheduled do
      Fiber.schedule { sleep(0.01) && writer.write("x") }
      IO.select([first, second], nil, nil, 60)
    end
    assert_equal [[second], [], []], found
    assert_equal [[second], [writer], []], scheduled { IO.select([second], [writer], [second]) }
  end

  # Whether there is something or not: the other fiber is what they ask for.
  def test_who_selects_again_and_again_holds_nobody_up
    reader, writer = pipe
    over = false
    looping do
      Fiber.schedule { nil until IO.select([reader], nil, nil, 0) }
      Fiber.schedule { IO.select(nil, [writer]) until over }
      Fiber.schedule { sleep(0.01) && (over = true) && writer.write("x") }
    end
    assert over
  end

  # IO#fileno is the one to read from.
  def test_select_waits_for_room_in_an_io_of_two_descriptors
    scheduled do
      child = IO.popen(["sleep", "60"], "r+")
      nil while child.write_nonblock("x" * 4096, exception: false) != :wait_writable
      Fiber.schedule { sleep(0.01) && Process.kill(:KILL, child.pid) }
      assert_equal [[], [child], []], IO.select(nil, [child], nil, 20)
      child.close
    end
  end

  def test_select_takes_no_thread
    reader, writer = pipe
    threads = nil
    looping do
      50.times { Fiber.schedule { IO.select([reader], nil, nil) } }
      threads = Thread.list.size
      Fiber.schedule { sleep(0.01) && writer.write("x") }
    end
    assert_operator threads, :<, 10
  end

  # An interrupt has Ruby's own say no without a look, one time in some 1,000,000 where threads compete.
  def test_select_believes_no_wrong_no
    result = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      elsewhere = Headway::FiberScheduler.const_get(:Elsewhere)
      select, looks = elsewhere.method(:select), 0
      elsewhere.define_singleton_method(:select) { |*asked| (looks += 1) < 5 ? nil : select.call(*asked) }
      Fiber.set_scheduler(Headway::FiberScheduler.new)
      reader, writer = IO.pipe
      Fiber.schedule { p IO.select([reader], nil, nil, 20)&.map(&:size) }
      Fiber.schedule { sleep(0.01) && writer.write("x") }
      Fiber.scheduler.run
      looks = 0
      Fiber.schedule { p IO.select([File.open("#{__FILE__}")], nil, nil, 20)&.map(&:size) }
    RUBY
    assert_equal ["[1, 0, 0]\n" * 2, ""], [result.out, result.err]
  end

  def test_select_of_a_list_that_another_fiber_changes
    (first, first_writer), (second, writer) = pipe, pipe
    list = [first, second]
    found = nil
    looping do
      Fiber.schedule { found = IO.select(list, nil, nil, 20) }
      Fiber.schedule do
        sleep 0.01
        list.delete(first)
        first_writer.write("x")
        sleep 0.01
        writer.write("x")
      end
    end
    assert_equal [[second], [], []], found
  end

  # As where there is no epoll.
  def test_a_select_that_is_given_up_leaves_no_thread
    result = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      require "timeout"
      Headway::FiberScheduler.const_get(:PollSet).define_singleton_method(:possible?) { false }
      Fiber.set_scheduler(Headway::FiberScheduler.new)
      reader, _writer = IO.pipe
      5.times { Fiber.schedule { Timeout.timeout(0.05) { IO.select([reader]) } rescue puts "late" } }
      Fiber.scheduler.run
      left = -> { Thread.list.count { |thread| thread.backtrace.to_a.grep(/select/).any? } }
      200.times { sleep 0.01 unless left.call.zero? }
      puts left.call
    RUBY
    assert_equal ["#{"late\n" * 5}0\n", ""], [result.out, result.err]
  end

  def test_select_ends_in_time
    reader, _writer = pipe
    assert_nil scheduled { IO.select([reader], nil, [reader], 0.01) }
    assert_nil scheduled { IO.select([reader], nil, nil, 0) }
    assert_nil scheduled { File.open(__FILE__) { |file| IO.select(nil, nil, [file, reader], 0.01) } }
  end

  def test_select_refuses_what_is_no_time
    errors = scheduled { [-1, "1", false].map { |value| assert_raises(ArgumentError, TypeError) { IO.select([], nil, nil, value) } } }
    assert_equal ["time interval must not be negative", "can't convert String into time interval",
                  "can't convert FalseClass into time interval"], errors.map(&:message)
  end

  # epoll reports the hang-up whatever was asked for; select(2) doesn't.
  def test_select_does_not_spin_on_a_hang_up
    reader, writer = pipe
    writer.close
    scheduler = looping { Fiber.schedule { assert_nil IO.select(nil, nil, [reader], 0.05) } }
    assert_operator scheduler.stats[:turns], :<, 20
  end

  # The hang-up, which select(2) doesn't tell of here, has it look a second time; the byte comes right after that.
  def test_select_finds_what_comes_as_it_looks
    reader, writer = pipe
    hung_up, closed = pipe
    closed.close
    looks = 0
    late = TracePoint.new(:c_return) { |call| writer.write("x") if call.method_id == :select && (looks += 1) == 2 }
    assert_equal [[reader], [], []], scheduled { Timeout.timeout(10) { late.enable { IO.select([reader], nil, [hung_up]) } } }
  end

  private

  def pipe = IO.pipe
end
