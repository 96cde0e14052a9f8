# frozen_string_literal: true

module Headway
  class OffloadPool
    # A block that runs on a worker as if it ran where it was written. It sees the fiber storage of there; what it leaves by a throw or
    # a break goes on there. Thread.current, fiber locals and thread locals are the worker's, and a return from the method around it
    # raises LocalJumpError, as in any thread.
    class Block
      # @yieldparam work [Block] to be called on a worker
      # @return what the block returns
      def self.run(block)
        work = new(block)
        work.leave(yield(work))
      end

      def initialize(block)
        @block = block
        @storage = Fiber.current.storage
        @leave = nil
      end

      # On a worker.
      def call
        @storage&.each { |key, value| Fiber[key] = value }
        @block.call
      rescue UncaughtThrowError => error
        @leave = error
        nil
      rescue LocalJumpError => error
        raise unless error.reason == :break

        error.exit_value
      ensure
        @storage&.each_key { |key| Fiber[key] = nil }
      end

      # Where it was written.
      def leave(value)
        @leave ? throw(@leave.tag, @leave.value) : value
      end
    end
  end
end
