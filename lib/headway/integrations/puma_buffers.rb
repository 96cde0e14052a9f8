# frozen_string_literal: true

require_relative "guard"

module Headway
  module Integrations
    # Keeps Puma's answers whole. Puma 7.2.1 and 8.0.2 (buffers of connections came with 6.0.1) hand a kept connection on to another
    # thread and after that, in the ensure of Server#process_client, empty its buffer, in which the other may be writing its answer by
    # then: that goes out without its first lines. It takes two switches of threads within microseconds, which stock Ruby hardly ever
    # makes, but Headway switches a hundred times as often.
    #
    # So no buffer goes from thread to thread: who asks for another's gets a new one. Puma's methods ask once each and keep what they
    # got to their end, so the thread before empties one that nobody uses.
    module PumaBuffers
      # In front of Puma::IOBuffer.
      module Buffer
        attr_reader :headway_thread

        def initialize
          super
          @headway_thread = Thread.current
        end
      end

      # In front of Puma::Client. Two threads may be in here at once: each returns what it made itself, whichever stays.
      module Client
        def io_buffer
          buffer = super
          buffer.headway_thread.equal?(Thread.current) ? buffer : @io_buffer = ::Puma::IOBuffer.new
        end
      end

      class << self
        # Does it now, or when Puma is there: `headway run` and initializers come before it, its threads after.
        # @return [void]
        def watch
          return if @joined || join

          @point ||= TracePoint.new(:thread_begin) { @point.disable if join }
          @point.enable
        end

        # @return [void]
        def unwatch
          @point&.disable
        end

        private

        # On threads of the program, where somebody may raise into them: held back, as every rescue clause in here, and defined?(A::B)
        # is one, would take that for its own. Threads that start inherit the mask; nothing in here starts any.
        def join
          return unless Object.const_defined?(:Puma)

          Thread.handle_interrupt(Object => :never) { Guard.guard("Puma's buffers") { put_in_front } }
        end

        def put_in_front
          return unless defined?(::Puma::Client) && ::Puma::Client.method_defined?(:io_buffer)

          ::Puma::IOBuffer.prepend(Buffer)
          ::Puma::Client.prepend(Client)
          @joined = true
        end
      end
    end
  end
end
