# frozen_string_literal: true

module Headway
  class FiberScheduler
    # What hooks do where there is no handing over to the loop (see #here?): they wait as if there were no scheduler.
    module Elsewhere
      module_function

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
