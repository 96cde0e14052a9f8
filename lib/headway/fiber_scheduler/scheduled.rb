# frozen_string_literal: true

module Headway
  class FiberScheduler
    # A fiber of the loop. What is raised in it from another fiber, and what kills it, runs it at once as ever; then the loop goes on,
    # and has to come back to that other fiber, which waits for nothing.
    class Scheduled < Fiber
      def raise(...) = come_back { super }

      def kill = come_back { super } && self

      private

      def come_back(&)
        scheduler = Fiber.current_scheduler unless equal?(Fiber.current)
        scheduler.is_a?(FiberScheduler) ? scheduler.come_back(&) : yield
      end
    end

    # Stands in the selector's queue for a fiber that made room for another one, until it runs again.
    WayBack = Struct.new(:fiber) do
      def alive? = fiber ? true : false
      def transfer = fiber.transfer
    end
    private_constant :Scheduled, :WayBack

    # @api private
    def come_back(&)
      return yield unless here?

      @selector.push(way = WayBack.new(Fiber.current))
      queued(&)
    ensure
      way&.fiber = nil
    end
  end
end
