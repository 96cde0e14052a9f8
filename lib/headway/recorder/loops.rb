# frozen_string_literal: true

require_relative "../forks"
require_relative "../integrations/guard"
require_relative "../loop_stall"

module Headway
  module Recorder
    # The watches over event loops that aren't Headway's, such as Async's, while something records; the native part (loops.c) asks for them
    # where fibers switch. A fiber that keeps its loop for too long is marked in the trace, with its stack.
    module Loops
      # As {FiberScheduler}'s stall_ms.
      THRESHOLD_NS = 50_000_000
      # A loop that waits, in a fiber that isn't blocking, as it shouldn't be: that is no stall.
      WAITS = /\bselect'\z/
      private_constant :THRESHOLD_NS, :WAITS
      @watches = {}.compare_by_identity

      class << self
        # @param thread [Thread] the current one, which has a loop
        # @return [Native::LoopWatch, nil] nil: its loop watches itself, or there is no thread to watch it with
        def watch(thread)
          Integrations::Guard.masked("the watch over event loops") do
            close_of_ended
            @watches.fetch(thread) { @watches[thread] = own_loop? ? nil : Native::LoopWatch.new(thread, THRESHOLD_NS) }
          end
        end

        # @param seconds [Float]
        # @param stack [Array<String>, nil]
        # @return [void]
        def stalled(seconds, stack)
          Integrations::Guard.masked("the watch over event loops") { LoopStall.mark(seconds, stack) unless stack&.first&.match?(WAITS) }
        end

        # The recording is over.
        # @return [void]
        def close
          Native.forget_loops
          @watches.each_value { |watch| watch&.close }
          @watches.clear
        end

        # In a forked child, which has none of the threads that watch.
        # @return [void]
        def start_afresh = close

        private

        def close_of_ended
          ended = @watches.reject { |thread,| thread.alive? }
          ended.each { |thread, watch| @watches.delete(thread) && watch.close }
        end

        def own_loop? = !Headway.autoload?(:FiberScheduler) && Fiber.scheduler.is_a?(FiberScheduler)
      end

      Native.watch_loops(self) if defined?(Native) # not where a part is loaded by itself
      Forks.watch(self, daemons: true)
    end
    private_constant :Loops
  end
end
