# frozen_string_literal: true

module Headway
  module Bench
    class Overview
      # One value of the table, with its spread.
      class Cell
        # What the three numbers are: the ends of a range, of a 95 % interval, or of the middle half.
        NAMES = { "median" => %w[median min max], "ratio" => %w[ratio low high], "quartiles" => %w[median q1 q3] }.freeze

        # @param samples [Array<Numeric, nil>]
        # @param unit [String] appended; "µs" picks the unit that fits
        # @return [Cell, nil] the median and the range; nil when nothing was measured
        def self.median(samples, unit)
          summary = Statistics.summary(samples)
          new(summary.values_at("median", "min", "max"), summary["n"], unit:, kind: "median") unless summary["n"].zero?
        end

        # @param ratio [Statistics::Ratio]
        # @param samples [Integer] how many it was computed from
        # @param note [String, nil] what else is worth knowing
        # @return [Cell] the ratio and its 95 % interval
        def self.ratio(ratio, samples, note: nil)
          new([ratio.ratio, ratio.low, ratio.high], samples, unit: "×", kind: "ratio", note:)
        end

        def initialize(numbers, count, unit:, kind:, note: nil)
          @numbers = numbers
          @count = count
          @unit = unit
          @kind = kind
          @note = note
        end

        # @return [Hash]
        def to_h
          { **NAMES.fetch(@kind).zip(@numbers).to_h, "n" => @count, "unit" => @unit, "note" => @note }.compact
        end

        # @return [String]
        def to_s
          middle, low, high = @numbers.map { show(_1) }
          spread = " (#{low}–#{high})" if @count > 1
          ["#{middle}#{unit}#{spread}", @note].compact.join("; ")
        end

        private

        def show(number)
          return Figure.duration(number) if @unit == "µs"

          @kind == "ratio" && number >= 0.1 ? Kernel.format("%.3f", number) : Figure.compact(number)
        end

        def unit = %w[µs ×].include?(@unit) ? nil : " #{@unit}"
      end
    end
  end
end
