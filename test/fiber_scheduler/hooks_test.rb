# frozen_string_literal: true

require "fiber_scheduler/scheduled"
require "io/nonblock"
require "socket"
require "tempfile"

# Hooks that the running Ruby doesn't call, or not in the form of later ones: called here as Ruby 4.0 and 4.1 call them.
class FiberSchedulerHooksTest < Minitest::Test
  include Scheduled

  OPTIONAL = %i[address_resolve blocking_operation_wait fiber fiber_interrupt io_close io_pread io_read io_select io_write process_wait
                timeout_after yield].freeze
  # IO::Buffer says at its first use that it is one.
  def setup
    @experimental = Warning[:experimental]
    Warning[:experimental] = false
  end

  def teardown
    Warning[:experimental] = @experimental
  end

  # Whether the running Ruby's own calls are of the form of 4.1.
  FROM_41 = Headway::Native::IOHooks == Headway::Native::IOHooksFrom41

  CONTENT = (0...500).map { |number| number.to_s(36) }.join.freeze

  # From 4.0 on the VM asks respond_to?, which doesn't see private methods.
  def test_the_vm_finds_every_hook
    assert_empty (%i[block unblock kernel_sleep io_wait scheduler_close] + OPTIONAL).reject { |hook| Headway::FiberScheduler.public_method_defined?(hook) }
  end

  # As what wraps hooks does: Qundef, by which they decline, would end the process.
  def test_who_calls_a_hook_through_a_method_in_c_gets_an_answer
    with_file(Headway::Native::IOHooksTo40) do |file, scheduler|
      hook = scheduler.method(:io_write)
      operation = [file, IO::Buffer.for("abc"), 3, 0]
      assert_equal [3] * 5, [hook.call(*operation), hook[*operation], hook.===(*operation), hook.unbind.bind_call(scheduler, *operation),
                             scheduler.public_send(:io_write, *operation)]
    end
  end

  def test_files_up_to_40
    with_file(Headway::Native::IOHooksTo40) do |file, scheduler|
      assert_equal [500, CONTENT[0, 500]], into_buffer(500) { |buffer| scheduler.io_read(file, buffer, 100, 0) }
      assert_equal [90, "\0" * 10 + CONTENT[500, 90]], into_buffer(100) { |buffer| scheduler.io_read(file, buffer, 0, 10) }
      assert_equal [20, "\0" * 80 + CONTENT[7, 20]], into_buffer(100) { |buffer| scheduler.io_pread(file, buffer, 7, 20, 80) }
      assert_equal [-Errno::EINVAL::Errno, "\0"], into_buffer(1) { |buffer| scheduler.io_read(file, buffer, 1, 2) }
    end
  end

  def test_more_than_the_buffer_has_room_for_is_refused_before_anything_is_read_or_written
    with_file(Headway::Native::IOHooksTo40) do |file, scheduler|
      reader, writer = IO.pipe
      Fiber.blocking { writer << CONTENT } # not by these hooks: Ruby's own calls may be of the other form
      refused = [-Errno::EINVAL::Errno, "\0" * 10]
      [file, reader].each { |io| assert_equal refused, into_buffer(10) { |buffer| scheduler.io_read(io, buffer, 6, 5) } }
      assert_equal refused, into_buffer(10) { |buffer| scheduler.io_pread(file, buffer, 0, 6, 5) }
      assert_equal refused, into_buffer(10) { |buffer| scheduler.io_write(writer, buffer, 6, 5) }
      assert_equal [0, CONTENT], [file.pos, Fiber.blocking { reader.read_nonblock(1000) }]
    end
  end

  def test_files_from_41_on
    with_file(Headway::Native::IOHooksFrom41) do |file, scheduler|
      assert_equal [20, "\0" * 10 + CONTENT[0, 20] + "\0" * 70], into_buffer(100) { |buffer| scheduler.io_read(file, buffer, 10, 20) }
      assert_equal [90, "\0" * 10 + CONTENT[20, 90]], into_buffer(100) { |buffer| scheduler.io_read(file, buffer, 10, 200) }
      assert_equal [3, CONTENT[7, 3] + "\0"], into_buffer(4) { |buffer| scheduler.io_pread(file, buffer, 7, 0, 3) }
      assert_equal [0, "\0"], into_buffer(1) { |buffer| scheduler.io_pread(file, buffer, 1_000_000, 0, 1) }
      assert_equal [-Errno::EINVAL::Errno, "\0"], into_buffer(1) { |buffer| scheduler.io_pread(file, buffer, -1, 0, 1) }
    end
  end

  # As a full pipe, an empty socket or one that blocks would be.
  def test_nothing_is_waited_for_from_41_on_where_no_bytes_are_asked_for
    with_file(Headway::Native::IOHooksFrom41) do |file, scheduler|
      reader, writer = IO.pipe
      blocking, = IO.pipe
      blocking.nonblock = false
      socket, other = UNIXSocket.pair
      Fiber.blocking { [writer, socket].each { |io| nil while io.write_nonblock(CONTENT * 100, exception: false) != :wait_writable } }
      [file, reader, blocking, socket].each { |io| assert_equal [0, "\0"], into_buffer(1) { |buffer| scheduler.io_read(io, buffer, 0, 0) } }
      [file, writer, socket].each { |io| assert_equal 0, IO::Buffer.for("a") { |buffer| scheduler.io_write(io, buffer, 0, 0) } }
      assert_equal [0, "\0"], into_buffer(1) { |buffer| scheduler.io_pread(file, buffer, 0, 0, 0) }
      other.close
    end
  end

  # What declines for the VM must not do so for Ruby code, which would crash.
  def test_called_from_ruby_code
    looping do |scheduler|
      reader, writer = IO.pipe
      Fiber.schedule do
        reader.wait_readable if FROM_41 # where a read no longer waits for the least that it is to get
        assert_equal [5, "hello"], into_buffer(5) { |buffer| scheduler.io_read(reader, buffer, *span(5)) }
      end
      Fiber.schedule do
        assert_equal 5, IO::Buffer.for("hello") { |buffer| scheduler.io_write(writer, buffer, *span(5)) }
        assert_equal [-Errno::ESPIPE::Errno, "\0"], into_buffer(1) { |buffer| scheduler.io_pread(reader, buffer, 0, *span(1)) }
      end
    end
  end

  def test_io_close_leaves_it_to_ruby_or_does_it
    scheduled do
      reader, writer = UNIXSocket.pair
      writer.close unless Fiber.scheduler.io_close(writer.fileno)
      assert_nil reader.gets
    end
    assert_equal false, Headway::FiberScheduler.new.io_close(0)
  end

  # 4.0 does this when an IO is closed that a fiber waits for; 4.1 may pass what stands for a fiber.
  def test_interrupting_a_fiber_that_waits_for_io
    [->(fiber) { fiber }, ->(fiber) { Struct.new(:fiber) { def alive? = fiber.alive?; def raise(error) = fiber.raise(error) }.new(fiber) }].each do |stand_in|
      error = nil
      looping do |scheduler|
        reader, _writer = IO.pipe
        fiber = Fiber.schedule { error = assert_raises(IOError) { reader.read(1) } }
        Thread.new { scheduler.fiber_interrupt(stand_in.call(fiber), IOError.new("stream closed in another thread")) }.join
      end
      assert_equal "stream closed in another thread", error.message
    end
  end

  def test_interrupting_a_fiber_whose_operation_runs_on_the_pool
    left = error = nil
    begun = Thread::Queue.new
    looping do |scheduler|
      fiber = Fiber.schedule { error = assert_raises(IOError) { scheduler.worker_pool.run { begin begun << true; sleep ensure left = true end } } } # rubocop:disable Style/Semicolon
      Fiber.schedule { begun.pop && scheduler.fiber_interrupt(fiber, IOError.new("closed")) }
    end
    assert_equal [true, "closed"], [left, error.message]
  end

  # One turn of the loop finds both bytes: the first fiber has the second interrupted, but that one goes on before the loop gets to it.
  def test_interrupting_a_wait_that_is_over_strikes_no_later_one
    WAITS_AFTER.each do |name, wait|
      result = :none
      looping do |scheduler|
        first, second = Array.new(2) { IO.pipe }
        told = nil
        Fiber.schedule { first[0].wait_readable && scheduler.fiber_interrupt(told, IOError.new("late")) }
        told = Fiber.schedule { second[0].wait_readable && result = wait.call }
        Fiber.schedule { [first, second].each { |_, writer| writer.write_nonblock("x") } }
      end
      assert_equal :untouched, result, name
    end
  end

  WAITS_AFTER = {
    sleep: -> { sleep(0.01) && :untouched },
    input: -> { IO.pipe { |reader, _writer| reader.wait_readable(0.01) || :untouched } },
    process: -> { Process.wait(spawn("true")) && :untouched }
  }.freeze

  def test_interrupting_a_fiber_that_ended_does_nothing
    slept = false
    scheduler = looping do |own|
      own.fiber_interrupt(Fiber.schedule { nil }, IOError.new("late"))
      Fiber.schedule { sleep(0.01) && slept = true }
    end
    assert slept, "another fiber goes on"
    assert_equal 0, scheduler.stats[:errors]
  end

  # The VM takes nil for done: then nobody would raise anything, and who closes would wait for good.
  def test_interrupting_what_the_loop_cannot_is_left_to_ruby
    answers = []
    scheduler = looping do |loops|
      answers << loops.fiber_interrupt(Fiber.current, error = IOError.new("not ours"))
      Fiber.schedule { sleep 0.01 }
      answers << loops.fiber_interrupt(Fiber.current, error) << loops.fiber_interrupt(false, error)
      Fiber.schedule { Fiber.blocking { |fiber| answers << loops.fiber_interrupt(fiber, error) } }
    end
    assert_equal [false] * 5, answers << scheduler.fiber_interrupt(Fiber.current, IOError.new("closed"))
  end

  # From 4.0 on an operation is no Proc, and says itself that it was called already.
  class Operation
    attr_reader :thread

    def call
      raise "Blocking operation has already been executed!" if @thread

      @thread = Thread.current
      nil
    end
  end

  def test_operations_of_40
    looping(pool: pool = Headway::OffloadPool.new(mode: :always)) do |scheduler|
      Fiber.schedule do
        scheduler.blocking_operation_wait(operation = Operation.new)
        refute_nil operation.thread
        refute_same Thread.current, operation.thread
        assert_raises(RuntimeError) { scheduler.blocking_operation_wait(operation) }
        Fiber.blocking { scheduler.worker_pool.call(operation = Operation.new) }
        assert_same Thread.current, operation.thread
      end
    end
  ensure
    pool.close
  end

  private

  # So many bytes from the beginning of a buffer, as the running Ruby's hooks are told.
  def span(size) = FROM_41 ? [0, size] : [size, 0]

  # @return [Array(Integer, String)] what the hook returned, and what is in the buffer then
  def into_buffer(size)
    buffer = IO::Buffer.new(size)
    [yield(buffer), buffer.get_string.b]
  end

  def with_file(hooks = nil)
    Tempfile.create("headway") do |file|
      file.write(CONTENT)
      file.rewind
      looping do |scheduler|
        scheduler.singleton_class.include(hooks) && scheduler.singleton_class.class_exec { hooks.instance_methods.each { |hook| define_method(hook, hooks.instance_method(hook)) } } if hooks
        Fiber.schedule { yield file, scheduler }
      end
    end
  end
end
