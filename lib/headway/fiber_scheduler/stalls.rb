# frozen_string_literal: true

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
      PLACE = /\A.*?:\d+(?=:)/m
      private_constant :PLACE

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
        Headway.mark(name(seconds, stack)) if Recorder.recording?
        @failures.watch { @callback.call(stall) } if @callback
      end

      # {Report::Stalls} reads it. Two digits: some 4,000 names are kept apart.
      def name(seconds, stack)
        ms = seconds * 1e3
        "loop stall of #{ms.round(1 - Math.log10(ms).floor).to_i} ms: #{stack ? frame(stack) : "no stack"}"
      end

      # A function in C has the place of who calls it, which says more, and Ruby's own Ruby has one that says nothing.
      def frame(stack)
        lines = stack.reject { |line| line.start_with?("<internal:") }
        lines.take_while { |line| place(line) == place(lines.first) }.last || stack.first
      end

      # A path may have any bytes, and any other than ASCII where no locale is set are none of its encoding's.
      def place(line) = line.b[PLACE]
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
