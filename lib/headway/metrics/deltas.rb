# frozen_string_literal: true

module Headway
  module Metrics
    # What has been added since the last look, for systems that add up by themselves. Gauges are as they are; one that is gone, as
    # headway_info with other settings is, is 0 once, as such systems keep what they were told last. A forked child knows what its parent
    # has told: what goes on from there is not told twice, and what began at zero is told whole.
    class Deltas
      # One change of one series.
      #
      # @!attribute type [Symbol] :counter, :gauge or :histogram
      # @!attribute number [Numeric, Distribution] of a histogram, counts not cumulative
      Change = Struct.new(:type, :name, :help, :labels, :number)

      def initialize
        @seen = {}
        @gauges = {}
      end

      # @param families [Array<Family>]
      # @return [Array<Change>]
      def of(families)
        changes = families.flat_map do |family|
          family.series.map do |labels, value|
            value = since(family, labels, value) unless family.type == :gauge
            Change.new(family.type, family.name, family.help, labels, value)
          end
        end
        gone(changes) + changes
      end

      # The same without histograms, for systems that can't take over a whole one: how many values and their sum instead.
      #
      # @param families [Array<Family>]
      # @return [Array<Change>]
      def flat(families)
        of(families).flat_map do |change|
          next [change] unless change.type == :histogram

          %i[sum count].map do |part|
            Change.new(:counter, "#{change.name}_#{part}", "#{change.help} (#{part})", change.labels, change.number[part])
          end
        end
      end

      private

      def gone(changes)
        before = @gauges
        @gauges = changes.select { |change| change.type == :gauge }.to_h { |gauge| [[gauge.name, gauge.labels], gauge] }
        before.reject { |key,| @gauges.key?(key) }.each_value { |gauge| gauge.number = 0 }.values
      end

      def since(family, labels, value)
        key = [family.name, labels]
        value = apart(value) if value.is_a?(Distribution)
        (process, before), @seen[key] = @seen[key], [family.process, value]
        before = nil unless process == family.process
        return less(value, before) unless value.is_a?(Distribution)

        # A whole distribution starts anew when Headway does.
        before = nil if before && before.count > value.count
        Distribution.new(value.bounds, value.counts.each_with_index.map { |count, i| less(count, before&.counts&.at(i)) },
                         less(value.sum, before&.sum), less(value.count, before&.count))
      end

      # Something smaller than before has begun at zero again.
      def less(value, before)
        before.nil? || before > value ? value : value - before
      end

      # Every count without the shorter bounds'.
      def apart(value)
        counts = value.counts.each_with_index.map { |count, i| i.zero? ? count : count - value.counts[i - 1] }
        Distribution.new(value.bounds, counts, value.sum, value.count)
      end
    end
  end
end
