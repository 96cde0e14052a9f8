# frozen_string_literal: true

module Headway
  class FiberScheduler
    # Waits for I/O.
    module Inputs
      include Native::IOHooks if Headway.supported?

      # Before Ruby 4.0 nobody tells a fiber that the IO it waits for was closed: they are looked for so often.
      CLOSED_EVERY = (1.0 if RUBY_VERSION < "4")
      private_constant :CLOSED_EVERY

      # @param events [Integer] of IO::READABLE, IO::WRITABLE and IO::PRIORITY
      # @param timeout [Numeric, nil] seconds; nil: the IO's own, which raises
      # @return [Integer, false] the events that are there; false when the time was over
      # @raise [IO::TimeoutError]
      # @raise [ArgumentError, TypeError] as Kernel#sleep
      def io_wait(io, events, timeout = nil)
        return Elsewhere.io_wait(io, events, timeout) unless here?

        limit = seconds(timeout.nil? ? io.timeout : timeout)
        if (ready = file_ready(io, events))
          self.yield
          return ready
        end
        fiber = Fiber.current
        waits = true
        timer = after(limit) { fiber.transfer(false) if waits } if limit
        outer = @selecting[fiber]
        @selecting[fiber] = io
        look_for_closed unless @looking
        found = select_one(fiber, io, events)
        found || look_once_more(io, events, raises: limit && timeout.nil?)
      ensure
        if fiber
          waits = false
          @selecting.delete(fiber)
          @struck.delete(fiber)
          @selecting[fiber] = outer if outer
          timer&.cancel!
          resumed if @idle
          @given_up[io.fileno] = true unless found || io.closed?
        end
      end

      # @return [Array<Array<IO>>, nil] as IO.select
      def io_select(readable, writable = nil, priority = nil, timeout = nil)
        timeout = seconds(timeout)
        return Elsewhere.select(readable, writable, priority, timeout) unless here?

        self.yield # or who asks again and again holds up everybody, the one it asks for among them
        ready = Elsewhere.select(readable, writable, priority, 0)
        return ready if ready || timeout&.zero?
        return on_thread { Elsewhere.select(readable, writable, priority, timeout) } unless PollSet.possible?

        deadline = timeout && after_now(timeout)
        PollSet.open(readable, writable, priority) { |set| select_in(set, deadline) }
      rescue Errno::EMFILE, Errno::ENFILE # no descriptor is left for the set
        on_thread { Elsewhere.select(readable, writable, priority, deadline && [deadline - @timers.now, 0].max) }
      end

      # Ruby 4.0 is about to close a descriptor.
      # @return [Boolean] false: Ruby shall close it itself
      def io_close(descriptor)
        here? && @selector.respond_to?(:io_close) ? @selector.io_close(descriptor) : false
      end

      private

      # Of what epoll refuses, io-event would put the fiber in its queue and not take it out when something is raised in it: it is
      # woken from a later wait then.
      def file_ready(io, events) = PollSet.possible? && !io.is_a?(BasicSocket) ? Native.poll_file(io, events) : nil

      # The time was over. But other fibers may have kept the loop from looking until then, and a thread would be told what came meanwhile.
      def look_once_more(io, events, raises:)
        ready = Elsewhere.io_wait(io, events, 0)
        raise IO::TimeoutError, "Blocking operation timed out!" if raises && !ready

        ready
      end

      # Two quirks of io-event's. What it keeps of a wait that was given up it takes for registered, when the same IO has the same
      # number: but IO#reopen has given that number to something else meanwhile. And what tells that nobody reads any more, which is all
      # there is to wait for in a full pipe then, it only tells who waits to read, turning the loop without end for who waits to write.
      # (But the selector that asks IO.select has neither, and takes IOs alone, and each for what it is open for.)
      def select_one(fiber, io, events)
        return @selector.io_wait(fiber, io, events) if @selector.is_a?(IO::Event::Selector::Select)

        asked = !@given_up.empty? && @given_up.delete(io.fileno) ? Anew.new(io) : io
        return @selector.io_wait(fiber, asked, events) unless events == IO::WRITABLE && PollSet.possible? && Native.poll_write_only?(io)

        @selector.io_wait(fiber, asked, IO::WRITABLE | IO::READABLE) && IO::WRITABLE
      end

      # An IO that is another object each time.
      Anew = Struct.new(:to_io) do
        def fileno = to_io.fileno
      end
      private_constant :Anew

      def look_for_closed
        @looking = after(CLOSED_EVERY) do
          @looking = nil
          closed = @selecting.select { |_, io| io.is_a?(IO) && io.closed? }
          closed.each { |fiber, io| fiber.raise(IOError, "stream closed in another thread") if @selecting[fiber].equal?(io) }
          look_for_closed unless @selecting.empty?
        end
      end

      # Called by {Native::IOHooks} for who calls a hook from Ruby code.
      def read_in_selector(io, buffer, first, second)
        in_selector(io) { |fiber| @selector.io_read(fiber, io, buffer, first, second) } || Fiber.blocking { buffer.read(io, first, second) }
      end

      def pread_here(io, buffer, from, first, second) = Fiber.blocking { buffer.pread(io, from, first, second) }

      # @param what [Object] is waited for
      # @return [Object, nil] what the block returns; nil: the loop isn't here
      def in_selector(what)
        return unless here?

        fiber = Fiber.current
        outer = @selecting[fiber]
        @selecting[fiber] = what
        yield fiber
      ensure
        if fiber
          @selecting.delete(fiber)
          @struck.delete(fiber)
          @selecting[fiber] = outer if outer
          resumed if @idle
        end
      end

      def after_now(seconds) = @timers.now + seconds

      # @param deadline [Float, nil]
      def select_in(set, deadline)
        loop do
          ready = set.ready and return ready
          left = deadline - @timers.now if deadline
          return if left && !left.positive?

          io_wait(set, IO::READABLE, left)
        end
      end
    end
  end
end
