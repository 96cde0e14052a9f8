# frozen_string_literal: true

module Headway
  module Metrics
    # All series of one name, at one moment.
    #
    # @!attribute name [String] with its base unit, such as ruby_gvl_wait_seconds
    # @!attribute type [Symbol] one of TYPES
    # @!attribute help [String] one line
    # @!attribute series [Hash{Hash => Numeric, Distribution}] by labels (Symbol => String)
    # @!attribute process [Object, nil] in which counting began at zero, the process's number or what else tells that it did; nil: nobody
    #   knows, as with a program's own, which go on in what it forks
    Family = Struct.new(:name, :type, :help, :series, :process)

    class Family
      TYPES = %i[counter gauge histogram].freeze

      # As every monitoring system takes it: for one wrong byte, or one 1/3, in a family of the program's own some refuse all families.
      #
      # @return [Family] the same in UTF-8 and in numbers as all write them, without what has no value now
      def plain
        there = series.select { |_, value| value.is_a?(Distribution) || (value.is_a?(Numeric) && value.real?) }
        plain = there.to_h { |labels, value| [labels.to_h { |label, text| [Reason.utf8(label).to_sym, Reason.utf8(text)] }, number(value)] }
        Family.new(Reason.utf8(name), Reason.utf8(type).to_sym, Reason.utf8(help), plain, process)
      end

      # @return [Family] the same of a process that has ended, whose gauges would stay as they are for ever where they were told
      def ended
        type == :gauge ? Family.new(name, type, help, series.transform_values { 0 }, process) : self
      end

      private

      def number(value)
        case value
        when Integer, Float, Distribution then value
        else value.to_f
        end
      end
    end

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
