# frozen_string_literal: true

module Headway
  module Metrics
    # All series of one name, at one moment.
    #
    # @!attribute name [String] with its base unit, such as ruby_gvl_wait_seconds
    # @!attribute type [Symbol] :counter, :gauge or :histogram
    # @!attribute help [String] one line
    # @!attribute series [Hash{Hash => Numeric, Distribution}] by labels (Symbol => String)
    Family = Struct.new(:name, :type, :help, :series)

    # A histogram's values at one moment.
    #
    # @!attribute bounds [Array<Float>] seconds, ascending, without the infinite one
    # @!attribute counts [Array<Integer>] how many values are at most as long as each bound: cumulative
    # @!attribute sum [Float] seconds
    # @!attribute count [Integer]
    Distribution = Struct.new(:bounds, :counts, :sum, :count)

    class Distribution
      # @param counts [Array<Integer>] of each bucket by itself
      # @return [Distribution]
      def self.of_counts(bounds, counts, sum, count)
        total = 0
        new(bounds, counts.map { |number| total += number }, sum, count)
      end
    end
  end
end
