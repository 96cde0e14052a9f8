# frozen_string_literal: true

require_relative "guard"

module Headway
  module Integrations
    # Keeps Puma's answers whole. Puma 7.2.1 and 8.0.2 (buffers of connections came with 6.0.1) hand a kept connection on to another
    # thread and after that, in the ensure of Server#process_client, empty its buffer, in which the other may be writing its answer by
    # then: that goes out without its first lines. It takes two switches of threads within microseconds, which stock Ruby hardly ever
    # makes, but Headway switches a hundred times as often.
    #
    # So no buffer goes from thread to thread: each has one of its own, as it writes one answer at a time.
    module PumaBuffers
      # In front of Puma::Client.
      module Client
        # Who asks is about to begin an answer, or has ended one: what is in there is left from one that was broken off.
        def io_buffer
          buffer = Thread.current[:headway_puma_buffer] ||= ::Puma::IOBuffer.new
          buffer.reset unless buffer.pos.zero?
          buffer
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

        # On threads of the program, where somebody may raise into them; defined?(A::B) would drop that, too.
        def join
          return unless Object.const_defined?(:Puma)

          Guard.masked("Puma's buffers") { put_in_front }
        end

        def put_in_front
          return unless defined?(::Puma::Client) && ::Puma::Client.method_defined?(:io_buffer)

          ::Puma::Client.prepend(Client)
          @joined = true
        end
      end
    end
  end
end
