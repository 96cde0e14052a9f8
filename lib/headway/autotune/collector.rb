# frozen_string_literal: true

require_relative "window"

module Headway
  class Autotune
    # Gathers finished works into windows. Bounded, whatever comes.
    class Collector
      CLASSES_MOST = 50
      OTHERS = "(others)"

      # One class in the window under way.
      class Gathered
        # Durations kept for the p99; beyond that, each has the same chance to be among them.
        KEPT = 5_000
        private_constant :KEPT

        def initialize
          @walls = []
          @count = 0
          @running = @suspended = 0.0
        end

        # @return [void]
        def add(wall, running, suspended)
          place = @count < KEPT ? @count : rand(@count + 1)
          @walls[place] = wall if place < KEPT
          @count += 1
          @running += running
          @suspended += suspended
        end

        # @return [Kind]
        def close
          sorted = @walls.sort
          Kind.new(count: @count, p99_s: sorted[(0.99 * sorted.size).ceil - 1], running_s: @running / @count,
                   suspended_s: @suspended / @count)
        end
      end
      private_constant :Gathered

      def initialize
        @lock = Mutex.new
        @arrived = Queue.new
        @classes = {}
        renew
      end

      # Waits for nobody, as it is called under a mask: where another thread is at it just now, that one takes it in, or the next.
      #
      # @param work [Work] finished
      # @return [void]
      def add(work)
        running, _, suspended = work.times
        @arrived << [work.name || work.kind.to_s, work.wall, running, suspended, work.error || work.status.to_i >= 500]
        return unless @lock.try_lock

        begin
          take_in
        ensure
          @lock.unlock
        end
      end

      # Ends the window and begins the next.
      #
      # @param backlogs [Array<Numeric>] looked up meanwhile
      # @return [Window]
      def close(backlogs = [])
        classes, failed, seconds = @lock.synchronize do
          take_in
          [@classes, @failed, clock - @began].tap { renew }
        end
        Window.new(at: Time.now, seconds: seconds, classes: classes.transform_values(&:close), failed: failed,
                   backlog: backlogs.empty? ? nil : backlogs.sum.fdiv(backlogs.size))
      end

      private

      def take_in
        until @arrived.empty?
          name, wall, running, suspended, failed = @arrived.pop
          gathered(name).add(wall, running, suspended)
          @failed += 1 if failed
        end
      end

      # Who had a class of its own keeps it for the next window: one that had not, as others came before it, would seem to have vanished.
      def renew
        @names = @classes.except(OTHERS).transform_values { true }
        @classes = {}
        @failed = 0
        @began = clock
      end

      def gathered(name)
        @classes[name] || (@classes[own?(name) ? name : OTHERS] ||= Gathered.new)
      end

      def own?(name) = @names.key?(name) || (@names.size < CLASSES_MOST && @names[name] = true)

      def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
