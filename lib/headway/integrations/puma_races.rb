# frozen_string_literal: true

require_relative "guard"

module Headway
  module Integrations
    # Closes two races in Puma wherever Headway starts.
    module PumaRaces
      # In front of Puma::Client: keeps answers whole. Puma 7.2.1 and 8.0.2 (buffers of connections came with 6.0.1) hand a kept
      # connection on to another thread and after that, in the ensure of Server#process_client, empty its buffer, in which the other may be
      # writing its answer by then: that goes out without its first lines. It takes two switches of threads within microseconds, which
      # stock Ruby hardly ever makes, but Headway switches a hundred times as often.
      #
      # So no buffer goes from thread to thread: each has one of its own, as it writes one answer at a time.
      module Buffers
        # Who asks is about to begin an answer, or has ended one: what is in there is left from one that was broken off.
        def io_buffer
          buffer = Thread.current[:headway_puma_buffer] ||= ::Puma::IOBuffer.new
          buffer.reset unless buffer.pos.zero?
          buffer
        end
      end

      # In front of Puma::Server: lets it stop. A trap handler on the main thread writes into a pipe, whose other end the server's thread
      # reads, and closes both. If the handler isn't out of its write by then, closing waits for it for good: on Ruby 3.3 and 3.4, with
      # Headway and without, one stop in four on a busy machine (ruby/ruby#13684, which came after 3.4).
      #
      # A write that can't block is nothing that closing waits for.
      module Notices
        private

        def notify_safely(message)
          @notify.write_nonblock(message, exception: false) # when there is no room the server hasn't read what it was told before
        rescue IOError, NoMethodError, SystemCallError
          nil # the server, in another thread, has closed it
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

        # On threads of the program, where somebody may raise into them; defined?(A::B) would drop that, too. A Puma that is to be loaded
        # at its first use is the application's own class: that is not for us to load.
        def join
          return unless Object.const_defined?(:Puma) && !Object.autoload?(:Puma)

          Guard.masked("Puma's races") { put_in_front }
        end

        def put_in_front
          return unless defined?(::Puma::Client) && defined?(::Puma::Server) && ::Puma::Server.private_method_defined?(:notify_safely)

          ::Puma::Client.prepend(Buffers) if ::Puma::Client.method_defined?(:io_buffer)
          ::Puma::Server.prepend(Notices)
          @joined = true
        end
      end
    end
  end
end
