# frozen_string_literal: true

require "fiber_scheduler/scheduled"
require "socket"
require "timeout"

# Fibers that the loop's own fiber resumes and waits for, as an Enumerator's: they can't hand over to the loop, and wait as if there
# were none.
class FiberSchedulerAsideTest < Minitest::Test
  include Scheduled

  # Each waits in another hook.
  WAITS = {
    sleep: -> { sleep(0.01) && :slept },
    file: -> { File.read(__FILE__).lines.first },
    pipe: -> { IO.pipe.then { |reader, writer| Thread.new { sleep(0.01) && writer.write("x") && writer.close } && reader.read } },
    select: -> { IO.pipe { |reader, _writer| IO.select([reader], nil, nil, 0.01) } },
    offload: -> { Headway.offload { sleep(0.01) && 4 } },
    thread: -> { Thread.new { sleep(0.01) && 5 }.value },
    queue: -> { Thread::Queue.new.pop(timeout: 0.01) },
    timeout: -> { Timeout.timeout(0.01) { sleep } rescue $!.class }, # rubocop:disable Style/RescueModifier
    process: -> { `echo out` },
    address: -> { Addrinfo.getaddrinfo("127.0.0.1", 80, nil, :STREAM).first.ip_address },
    schedule: -> { Fiber.schedule { sleep 0.1 }.alive? }
  }.freeze

  RESULTS = { sleep: :slept, file: "# frozen_string_literal: true\n", pipe: "x", select: nil, offload: 4, thread: 5, queue: nil,
              timeout: Timeout::Error, process: "out\n", address: "127.0.0.1", schedule: true }.freeze

  def teardown
    Headway::OffloadPool.default.close
  end

  def test_before_the_loop_begins
    waiting = RESULTS.except(:schedule) # by which the loop begins
    looping { assert_equal waiting, results(waiting.keys) }
  end

  def test_beside_fibers_that_wait
    ended = 0
    looping do
      3.times { Fiber.schedule { sleep(0.01) && ended += 1 } }
      assert_equal RESULTS, results
    end
    assert_equal 3, ended
  end

  def test_in_a_fiber_of_the_loop_it_is_the_loop_that_goes_on
    ended = 0
    looping do
      Fiber.schedule { assert_equal RESULTS, results }
      3.times { Fiber.schedule { sleep(0.01) && ended += 1 } }
    end
    assert_equal 3, ended
  end

  # By a blocking one, which has ended, or waits to be resumed, when the thread ends and the loop is to run.
  def test_beginning_the_loop
    ended = []
    [-> {}, -> { Fiber.yield }].each do |leave|
      Thread.new do
        Fiber.set_scheduler(Headway::FiberScheduler.new)
        Fiber.new(blocking: true) { Fiber.schedule { sleep(0.01) && ended << leave } && leave.call }.resume
      end.join
    end
    assert_equal 2, ended.size
  end

  private

  # Of an Enumerator's fiber, which is resumed for each.
  def results(names = RESULTS.keys)
    waits = Enumerator.new { |values| names.each { |name| values << WAITS.fetch(name).call } }
    names.to_h { |name| [name, waits.next] }
  end
end
