# frozen_string_literal: true

require "io/wait"

# The smallest fiber scheduler that tests of a pool need: plain Ruby over IO.select, so that the pool is tested apart from any event
# loop. What it does with blocking_operation_wait is up to who makes it.
class SelectScheduler
  # Runs the block as the first fiber of a scheduler on a thread of its own, until every fiber has ended.
  #
  # @param waiter [#call, nil] gets the work of blocking_operation_wait; nil: there is no such hook
  # @return what the block returned; what it raised is raised
  def self.run(waiter = nil, &block)
    Thread.new do
      Thread.current.report_on_exception = false
      scheduler = new
      scheduler.define_singleton_method(:blocking_operation_wait) { |work| waiter.call(work) } if waiter
      Fiber.set_scheduler(scheduler)
      result = error = nil
      Fiber.schedule do
        result = block.call(scheduler)
      rescue Exception => error
        nil
      end
      Fiber.set_scheduler(nil)
      raise error if error

      result
    end.value
  end

  attr_reader :turns

  def initialize
    @lock = Thread::Mutex.new
    @ready = []
    @readable = {}
    @writable = {}
    @timers = {} # fiber => [time, what to raise]
    @blocked = {}.compare_by_identity
    @turns = 0
    @wake_reader, @wake_writer = IO.pipe
  end

  def fiber(&block) = Fiber.new(blocking: false, &block).tap(&:resume)

  def block(_blocker, timeout = nil)
    fiber = Fiber.current
    @blocked[fiber] = true
    @timers[fiber] = now + timeout if timeout
    Fiber.yield
  ensure
    @blocked.delete(fiber)
    @timers.delete(fiber)
  end

  def unblock(_blocker, fiber)
    @lock.synchronize { @ready << fiber }
    @wake_writer.write_nonblock(".", exception: false)
  rescue IOError
    nil
  end

  # Since Ruby 4.0: another thread closes what the fiber waits for.
  def fiber_interrupt(fiber, exception) = unblock(nil, Interruption.new(fiber, exception))

  # Resumed in the fiber's stead.
  Interruption = Struct.new(:fiber, :exception) do
    def alive? = fiber.alive?
    def resume = fiber.raise(exception)
  end

  def kernel_sleep(duration = nil)
    duration == 0 ? (unblock(nil, Fiber.current) and Fiber.yield) : block(:sleep, duration)
  end

  def io_wait(io, events, timeout = nil)
    fiber = Fiber.current
    @readable[io] = fiber if events & IO::READABLE != 0
    @writable[io] = fiber if events & IO::WRITABLE != 0
    block(io, timeout)
    events
  ensure
    @readable.delete(io)
    @writable.delete(io)
  end

  # What a timeout does to a fiber: raises in it, wherever it waits.
  def raise_after(seconds, fiber, error)
    fiber(&-> { kernel_sleep(seconds); fiber.raise(error) if fiber.alive? })
  end

  def close = run

  def run
    turn until @blocked.empty? && @timers.empty? && @ready.empty? && @readable.empty? && @writable.empty?
  ensure
    [@wake_reader, @wake_writer].each { |io| io.close unless io.closed? }
  end

  private

  def turn
    @turns += 1
    readable, writable = IO.select([@wake_reader, *@readable.keys], @writable.keys, [], seconds_to_wait)
    @wake_reader.read_nonblock(512, exception: false) if readable&.delete(@wake_reader)
    fibers = [*readable.to_a.map { |io| @readable[io] }, *writable.to_a.map { |io| @writable[io] }]
    fibers.concat(@timers.select { |_, at| at <= now }.keys)
    fibers.concat(@lock.synchronize { @ready.slice!(0..) })
    fibers.uniq.each { |fiber| fiber.resume if fiber&.alive? }
  end

  def seconds_to_wait
    return 0 unless @ready.empty?

    @timers.each_value.min&.then { |at| [at - now, 0].max }
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
