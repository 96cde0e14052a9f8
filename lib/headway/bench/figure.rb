# frozen_string_literal: true

module Headway
  module Bench
    # What a figure is called, and how to show it.
    #
    # @!attribute key [String] its name in the JSON
    # @!attribute title [String]
    # @!attribute unit [String]
    # @!attribute better [Symbol] :lower, :higher or :neither
    # @!attribute scale [Symbol] :linear or :log
    Figure = Data.define(:key, :title, :unit, :better, :scale) do
      def initialize(key:, title:, unit: "s", better: :lower, scale: :linear) = super

      # @param number [Numeric, nil]
      # @return [String] three digits are enough
      def format(number)
        return "–" unless number
        return Figure.duration(number) if unit == "µs"

        Figure.compact(number)
      end
    end

    class Figure
      class << self
        # @return [String] such as 1.23M, 4560, 0.00123
        def compact(number)
          magnitude = number.abs
          if magnitude >= 1e6 then "#{significant(number / 1e6)}M"
          elsif magnitude >= 1e4 then "#{significant(number / 1e3)}k"
          else significant(number)
          end
        end

        # @param microseconds [Numeric]
        # @return [String] in the unit that fits, such as 23 µs or 1.6 s
        def duration(microseconds)
          if microseconds >= 1e6 then "#{significant(microseconds / 1e6)} s"
          elsif microseconds >= 1e3 then "#{significant(microseconds / 1e3)} ms"
          else "#{significant(microseconds)} µs"
          end
        end

        private

        def significant(number)
          return "0" if number.zero?

          digits = [2 - Math.log10(number.abs).floor, 0].max
          digits > 6 ? Kernel.format("%.1e", number) : Kernel.format("%.#{digits}f", number)
        end
      end
    end
  end
end
