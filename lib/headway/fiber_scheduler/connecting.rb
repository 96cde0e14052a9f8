# frozen_string_literal: true

require "socket"

module Headway
  class FiberScheduler
    # Since Ruby 3.4 TCPSocket.new looks a name up for both families at once, and tries what comes first. While it waits for that it asks no
    # scheduler: the whole loop would wait for the name. So it has a thread of its own then, as {Processes#address_resolve} has.
    module Connecting
      ADDRESS = /\A[\d.]+\z|:/ # which isn't looked up
      private_constant :ADDRESS

      def initialize(*arguments, **options)
        scheduler = Fiber.current_scheduler
        return super unless scheduler.is_a?(FiberScheduler) && options.fetch(:fast_fallback) { Socket.tcp_fast_fallback }
        return super if ADDRESS.match?(String.try_convert(arguments.first))

        begin
          scheduler.connect { super }
        rescue SystemCallError, SocketError, IO::TimeoutError => error
          error.set_backtrace(caller_locations(1)) # not that of a thread that nobody knows
          raise
        end
      end
    end
    private_constant :Connecting

    TCPSocket.prepend(Connecting) if Socket.respond_to?(:tcp_fast_fallback)

    # @api private
    def connect(&) = on_thread(&)
  end
end
