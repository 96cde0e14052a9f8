# frozen_string_literal: true

module Headway
  class Work
    # Times of work where Headway can do nothing: only the clock's.
    class Untimed
      def initialize
        @started = clock
        @wall = nil
      end

      def look
        self
      end

      def running
        0.0
      end
      alias ready running
      alias suspended running

      def to_a
        [0.0, 0.0, 0.0]
      end

      def wall
        @wall || (clock - @started)
      end

      def measured?
        false
      end

      def finished?
        !@wall.nil?
      end

      # @return [Boolean] whether it wasn't finished yet
      def finish
        return false if finished?

        @wall = wall
        true
      end

      private

      def clock
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
