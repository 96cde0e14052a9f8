# frozen_string_literal: true

module Headway
  class FiberScheduler
    # Stands in the selector's queue for the fibers that were woken.
    class Waker
      def initialize(scheduler)
        @scheduler = scheduler
        @queued = false
      end

      # @return [Boolean] whether it has to be queued
      def queue? = @queued ? false : @queued = true

      def alive? = true

      def transfer
        @queued = false
        @scheduler.resume_woken
      end
    end
    private_constant :Waker

    # Stands for the loop's fiber while it is not known, and has the selector's transfers go there.
    Home = Struct.new(:fiber) do
      def alive? = fiber.alive?
      def transfer = fiber.transfer
    end
    private_constant :Home

    # Stands in the selector's queue for a fiber that has yet to begin.
    Newborn = Struct.new(:fiber, :queued) do
      def alive? = fiber.alive?

      def transfer
        queued.delete(fiber)
        fiber.transfer
      end
    end
    private_constant :Newborn
  end
end
