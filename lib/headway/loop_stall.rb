# frozen_string_literal: true

module Headway
  # An event loop that stood still, as a trace tells it: {Report::Stalls} reads that.
  module LoopStall
    # A turn that takes so long, where nobody says otherwise.
    LONG_MS = 50
    PLACE = /\A.*?:\d+(?=:)/m
    private_constant :PLACE

    class << self
      # On the loop's thread, when it is over.
      #
      # @param seconds [Float]
      # @param stack [Array<String>, nil] what held the loop, innermost frame first
      # @return [void]
      def mark(seconds, stack)
        Headway.mark(text(seconds, stack)) if Recorder.recording?
      end

      private

      # Two digits: some 4,000 names are kept apart.
      def text(seconds, stack)
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
  end
  private_constant :LoopStall
end
