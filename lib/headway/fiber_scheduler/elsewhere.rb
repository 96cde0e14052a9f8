# frozen_string_literal: true

module Headway
  class FiberScheduler
    # What hooks do where the loop isn't: on a worker thread (IO.copy_stream calls hooks from one), and in a forked child, which
    # has the fibers of its parent but not its selector. They wait as if there were no scheduler.
    module Elsewhere
      module_function

      def sleep(duration)
        Fiber.blocking { duration ? Kernel.sleep(duration) : Kernel.sleep }
        true
      end

      def io_wait(io, events, timeout)
        Fiber.blocking { io.wait(events, timeout) } || false
      end

      def process_wait(pid, flags)
        Fiber.blocking { Process::Status.wait(pid, flags) }
      end

      def select(readable, writable, priority, timeout)
        Fiber.blocking { IO.select(readable, writable, priority, timeout) }
      end
    end
    private_constant :Elsewhere
  end
end
