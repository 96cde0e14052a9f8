# frozen_string_literal: true

require "socket"
require_relative "../own_thread"

module Headway
  class FiberScheduler
    # Waits for child processes and for addresses.
    module Processes
      # A process's number that is another object each time. What epoll's selector knows of a descriptor holds for the object it was
      # waited for with: where a wait was given up, and the next one for the process gets the same descriptor anew, it would take it for
      # registered, and wait for ever.
      Number = Struct.new(:to_int)
      private_constant :Number

      # Why there is no descriptor for a process: no such process, of which Ruby knows what to say; none is left; an old kernel, or a
      # container that forbids it.
      NO_DESCRIPTOR = [Errno::ESRCH, Errno::EMFILE, Errno::ENFILE, Errno::ENOSYS, Errno::EPERM].freeze
      private_constant :NO_DESCRIPTOR

      # @param pid [Integer]
      # @param flags [Integer] as Process.wait
      # @return [Process::Status]
      def process_wait(pid, flags)
        return Elsewhere.process_wait(pid, flags) unless here?
        # A selector knows of ends alone, not of stops, and older ones of a single process, not of any child or a group.
        return on_thread { Elsewhere.process_wait(pid, flags) } unless flags.zero? && pid.positive?

        in_selector(pid) do |fiber|
          status = @selector.process_wait(fiber, Number.new(pid), flags) until status
          status
        end
      rescue *NO_DESCRIPTOR
        on_thread { Elsewhere.process_wait(pid, flags) }
      end

      # The system's resolver, on a thread: it may block as long as it likes. ({Native::AddressHook} leaves addresses to Ruby.)
      #
      # @param host [String, #to_str] perhaps with the interface's name: fe80::1%eth0
      # @return [Array<String>] addresses
      def address_resolve(host)
        on_thread { addresses(host.to_str[/\A[^%]+/]) }
      end

      private

      # A signal's handler may raise before we know the thread, which hence says itself that it is there.
      def on_thread
        begun = []
        over = false
        thread = OwnThread.start do
          begun << Thread.current
          yield unless over
        end
        thread.name = "headway fiber scheduler"
        thread.report_on_exception = false
        thread.value
      ensure
        over = true
        begun.each(&:kill)
      end

      def addresses(host)
        Addrinfo.getaddrinfo(host, nil, nil, :STREAM).map(&:ip_address).uniq
      rescue SocketError
        [] # Ruby says that the host is not known
      end
    end
  end
end
