# frozen_string_literal: true

require_relative "../loop_stall"

module Headway
  class FiberScheduler
    # One turn of the loop that was too long.
    #
    # @!attribute seconds [Float] the turn's length
    # @!attribute stack [Array<String>, nil] the loop's Ruby stack when the turn had become too long, innermost frame first; nil
    #   when no thread got the GVL until the turn was over
    Stall = Data.define(:seconds, :stack)

    # Turns of the loop that are longer than a threshold: counted, kept, marked in a trace, and told to a callback.
    class Stalls
      # So many are kept; of older ones only their number is known.
      KEPT = 32

      # @param threshold [Numeric] seconds
      # @param callback [#call, nil] called on the loop with each {Stall}
      # @param failures [Failures] for what the callback raises
      def initialize(threshold, callback, failures)
        @threshold_ns = (threshold * 1e9).round
        @callback = callback
        @failures = failures
        @kept = []
        @count = 0
        @longest = 0.0
      end

      # Starts to watch the current thread.
      def start
        @watch ||= Native::LoopWatch.new(Thread.current, @threshold_ns)
      rescue ThreadError
        Notices.add("stalls of the loop aren't seen: there is no thread to watch it with")
        @watch = Unwatched
      end

      # A turn begins, after one that is over. What the callback takes is no turn's: one that is slow would be told of itself for ever.
      def turn
        long = @watch.turn or return
        add(*long)
        @watch.turn if @callback
      end

      # The loop goes to wait.
      def idle
        long = @watch.idle and add(*long)
      end

      def close = @watch&.close

      # @return [Hash] times in seconds; the last ones, oldest first
      def to_h
        { threshold: @threshold_ns / 1e9, count: @count, longest: @longest, last: @kept.map { { seconds: _1.seconds, stack: _1.stack } } }
      end

      private

      def add(seconds, stack)
        stall = Stall.new(seconds:, stack:)
        @count += 1
        @longest = seconds if seconds > @longest
        @kept.shift if @kept.size == KEPT
        @kept << stall
        LoopStall.mark(seconds, stack)
        @failures.watch { @callback.call(stall) } if @callback
      end
    end
    private_constant :Stalls

    # Stands for {Stalls} where nothing is watched.
    module Unwatched
      module_function

      def start = nil
      def turn = nil
      def idle = nil
      def close = nil
      def to_h = nil
    end
    private_constant :Unwatched
  end
end
