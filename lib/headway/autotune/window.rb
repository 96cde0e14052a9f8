# frozen_string_literal: true

module Headway
  class Autotune
    # What a process did in a stretch of time under one setting.
    #
    # @!attribute at [Time] when it ended
    # @!attribute seconds [Numeric] its length
    # @!attribute classes [Hash{String => Kind}] by class of work
    # @!attribute failed [Integer] works that ended in an error or a status of 500 and more
    # @!attribute backlog [Float, nil] works that waited in front of what is tuned, on average; nil: nobody tells
    Window = Data.define(:at, :seconds, :classes, :failed, :backlog) do
      def initialize(at:, seconds:, classes:, failed: 0, backlog: nil) = super

      # @return [Integer] works
      def count = classes.sum { |_, kind| kind.count }

      # @return [Float] works a second
      def per_s = count / seconds.to_f

      # @return [Float] of all works, those that ended in an error
      def failed_share = count.zero? ? 0.0 : failed.fdiv(count)

      # @return [Float] seconds a work needs the GVL, on average
      def running_s = mean(:running_s)

      # @return [Float] seconds a work is suspended, on average
      def suspended_s = mean(:suspended_s)

      private

      def mean(part) = count.zero? ? 0.0 : classes.sum { |_, kind| kind.count * kind.public_send(part) } / count
    end

    # Works of one class in a window; running_s, suspended_s: means.
    Kind = Data.define(:count, :p99_s, :running_s, :suspended_s)
  end
end
