# frozen_string_literal: true

# Takes the place of CRuby's test/fiber/scheduler.rb: the same names, with Headway::FiberScheduler behind them. The tests' own
# processes load it too.

require "headway"
require "io/nonblock"
require "socket"

class Scheduler < Headway::FiberScheduler
  # Ruby 3.3's tests leave a fiber by Fiber.yield, because the scheduler they were written for resumes fibers. This one
  # transfers to them; later tests call its transfer.
  module YieldToLoop
    def yield(*) = Fiber.current_scheduler.is_a?(Scheduler) ? Fiber.current_scheduler.transfer : super
  end
  Fiber.singleton_class.prepend(YieldToLoop) if RUBY_VERSION < "3.4"
end

# Ours has hooks for reading and writing.
IOBufferScheduler = Class.new(Scheduler)

# Schedulers with a hook that misbehaves.
class BrokenUnblockScheduler < Scheduler
  def unblock(...)
    super
    raise "Broken unblock!"
  end
end

class SleepingUnblockScheduler < Scheduler
  def unblock(...)
    super
    sleep 0.1
  end
end

class SleepingBlockingScheduler < Scheduler
  def kernel_sleep(duration = nil)
    Fiber.blocking { sleep 0.0001 }
    block(:sleep, duration)
    true
  end
end

# The next two are there from Ruby 4.1 on.
class IOScheduler < Scheduler
  def operations = @operations ||= []

  def io_write(io, buffer, length, offset)
    operations << [:io_write, io.fileno, buffer.get_string(offset)]
    super
  end
end

class IOErrorScheduler < Scheduler
  def io_read(...) = -Errno::EBADF::Errno
  def io_write(...) = -Errno::EINVAL::Errno
end
