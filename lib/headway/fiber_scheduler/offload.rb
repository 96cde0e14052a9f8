# frozen_string_literal: true

module Headway
  class FiberScheduler
    # Hands blocking operations to a pool.
    module Offload
      include Native::OffloadHook if Headway.supported?

      # The hook for pools that aren't an {OffloadPool}, which has a faster one.
      module Hook
        def blocking_operation_wait(work) = @worker_pool.call(work)
      end
      private_constant :Hook

      # Since Ruby 4.1 buffers are told where to begin and how much to read at most.
      MAXIMUM = defined?(IO::Buffer::VERSION) && IO::Buffer::VERSION >= 3
      private_constant :MAXIMUM

      private

      def offload_to(pool)
        pool = @own_pool = (OffloadPool.new if Headway.supported?) if pool == true
        return unless pool
        raise ArgumentError, "pool is #{pool.inspect}: give true, nil, or one that can be called" unless pool.respond_to?(:call)

        @worker_pool = pool
        extend(Hook) unless pool.is_a?(OffloadPool)
      end

      # Called by {Native::IOHooks} for what may not be in the page cache. Where the pool has it read here (its queue is full, or nothing is
      # handed over), Ruby must not ask for the hook again.
      #
      # @param from [Integer, nil] nil: the file's position
      # @param offset [Integer] in the buffer
      # @param least [Integer] bytes, unless the file ends
      # @param most [Integer] bytes
      # @param cached [false, nil] nil: it may be cached, so the pool decides by what such a read took before
      # @return [Integer] bytes, or an error's number, negative
      def read_on_pool(io, buffer, from, offset, least, most, cached)
        span = MAXIMUM ? [offset, most] : [least, offset]
        reading = -> { Fiber.blocking { from ? buffer.pread(io, from, *span) : buffer.read(io, *span) } }
        cached.nil? || !@worker_pool.respond_to?(:run) ? measured(&reading) : @worker_pool.run(&reading)
      end

      def measured
        result = nil
        @worker_pool.call(-> { result = yield })
        result
      end
    end
    private_constant :Offload
  end
end
