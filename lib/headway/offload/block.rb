# frozen_string_literal: true

module Headway
  class OffloadPool
    # A block that runs on a worker as if it ran where it was written. It sees a copy of the fiber storage of there; what it leaves by
    # a throw or a break goes on there. Otherwise it is in another thread: Thread.current, fiber locals, thread locals and the locks it
    # holds are the worker's, a return from the method around it raises LocalJumpError, and a rescue in it sees a throw to the outside
    # as UncaughtThrowError.
    class Block
      # @yieldparam work [Block] to be called on a worker
      # @return what the block returns
      def self.run(block)
        work = new(block)
        work.leave(yield(work))
      end

      # Empties the current fiber's storage.
      def self.forget_storage
        Fiber.current.storage&.each_key { |key| Fiber[key] = nil }
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
        raise unless own_throw?(error)

        @leave = error
        nil
      rescue LocalJumpError => error
        raise unless own_break?(error)

        error.exit_value
      ensure
        Fiber.set_scheduler(nil) # one of the block's own: it ends as with its thread
      end

      # Where it was written.
      def leave(value)
        @leave ? throw(@leave.tag, @leave.value) : value
      end

      private

      # Not one that another thread could not deliver, and that Thread#value, say, raises here.
      def own_throw?(error)
        inside = error.backtrace_locations&.at(-caller_locations(2).size)
        !inside.nil? && inside.path == __FILE__
      end

      # Not that of a proc which was called in it, and whose method is gone: between our call and the break there is the block alone,
      # and what of it are frames of their own, its rescue and ensure clauses.
      def own_break?(error)
        return false unless error.reason == :break && error.backtrace_locations

        inside = error.backtrace_locations[0...-caller_locations(2).size]
        inside.one? { |location| !location.label.match?(/\A(?:rescue|ensure) in /) }
      end
    end
  end
end
