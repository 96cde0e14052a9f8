# frozen_string_literal: true

require_relative "../forks"
require_relative "../integrations/guard"
require_relative "../loop_stall"

module Headway
  module Recorder
    # The watches over event loops that aren't Headway's, such as Async's, while something records; the native part (loops.c) asks for them
    # where fibers switch. A fiber that keeps its loop for too long is marked in the trace, with its stack.
    module Loops
      THRESHOLD_NS = LoopStall::LONG_MS * 1_000_000
      # What a loop waits in; so may its fibers, where Ruby asks no scheduler.
      SELECT = /\bselect'\z/
      private_constant :THRESHOLD_NS, :SELECT
      @watches = {}.compare_by_identity

      class << self
        # @param thread [Thread] the current one
        # @param scheduler [Object] its loop
        # @return [Native::LoopWatch, nil] nil: the loop watches itself, or there is no thread to watch it with
        def watch(thread, scheduler)
          Integrations::Guard.masked("the watch over event loops") do
            Forks.watch(self, daemons: true)
            close_of_ended
            @watches[thread] ||= Native::LoopWatch.new(thread, THRESHOLD_NS) unless own?(scheduler)
          end
        end

        # @param seconds [Float]
        # @param stack [Array<String>, nil]
        # @return [void]
        def stalled(seconds, stack)
          Integrations::Guard.masked("the watch over event loops") { LoopStall.mark(seconds, stack) unless stack && loop_waits?(stack) }
        end

        # The recording is over; others may start the next one meanwhile.
        # @return [void]
        def close
          Integrations::Guard.masked("the watch over event loops") do
            watches = @watches
            @watches = {}.compare_by_identity
            watches.values.each(&:close)
            Native.forget_loops
          end
        end

        # In a forked child, which has none of the threads that watch.
        # @return [void]
        def start_afresh = close

        private

        def close_of_ended
          ended = @watches.reject { |thread,| thread.alive? }
          ended.each { |thread, watch| @watches.delete(thread) && watch.close }
        end

        def own?(scheduler) = !Headway.autoload?(:FiberScheduler) && FiberScheduler === scheduler

        # What strikes the loop where it goes on leaves a turn under way, in which the loop waits.
        def loop_waits?(stack)
          return false unless stack.first.match?(SELECT)

          file, = Fiber.scheduler.method(:io_wait).source_location
          stack.find { |line| !line.match?(SELECT) }&.start_with?("#{file}:")
        end
      end

      Native.watch_loops(self) if defined?(Native) # not where a part is loaded by itself
    end
    private_constant :Loops
  end
end
