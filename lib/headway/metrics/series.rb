# frozen_string_literal: true

require_relative "../forks"

module Headway
  module Metrics
    # The series of one name that the program adds to, a value for each set of labels. The number of sets is bounded: what comes
    # after is counted under "(others)", so that no path or class name that somebody makes up can fill a memory or a database.
    class Series
      OTHERS = "(others)"
      FORKED = Mutex.new
      private_constant :FORKED

      # @return [String]
      attr_reader :name

      # @param name [String]
      # @param help [String]
      # @param labels [Array<Symbol>]
      # @param most [Integer] sets of labels kept apart
      def initialize(name, help:, labels:, most:)
        @name = name
        @help = help
        @labels = labels
        @most = most
        begin_at_zero
      end

      # @return [Family]
      def family
        afresh
        series = @lock.synchronize { @values.to_h { |key, value| [@labels.zip(key).to_h, copy(value)] } }
        Family.new(@name, type, @help, series, @process)
      end

      # @return [Array<Family>]
      def families
        [family]
      end

      private

      # In a forked child: what its parent counted is the parent's.
      def afresh
        return if @forks == Forks.number

        FORKED.synchronize { begin_at_zero unless @forks == Forks.number }
      end

      def begin_at_zero
        @values = {}
        @lock = Mutex.new
        @process = ::Process.pid
        @forks = Forks.number # the last: then all is there
      end

      # @param values [Array] of the labels, in their order
      # @raise [ArgumentError] for another number of values than of labels
      def change(values)
        values.size == @labels.size or raise ArgumentError, "#{@name} has the labels #{@labels.join(", ")}: give a value for each, not #{values.size}"

        afresh
        @lock.synchronize do
          key = @values.key?(values) ? values : new_key(values)
          @values[key] = yield(@values[key])
        end
        nil
      end

      # The first label is the one that programs make up. A key is kept, so it must be nobody else's.
      def new_key(values)
        key = values.map { |value| Reason.utf8(value) }
        return key if @values.key?(key) || @values.size < @most

        others = [OTHERS, *key.drop(1)]
        @values.key?(others) || @values.size < 2 * @most ? others : Array.new(key.size, OTHERS)
      end
    end

    # Counts what only ever grows.
    class Counter < Series
      # @param values [Array] of the labels, in their order
      # @param by [Numeric] a negative one is left out, as is one that isn't finite: nothing would ever be added to that again
      # @return [void]
      # @raise [ArgumentError] another number of values than of labels, a by that is no number
      def add(*values, by: 1)
        by.is_a?(Numeric) or raise ArgumentError, "by is #{by.inspect[0, 60]}: give a number"

        change(values) { |value| (value || 0) + by } if by.finite? && !by.negative?
      end

      private

      def type
        :counter
      end

      def copy(value)
        value
      end
    end

    # Counts durations by their length.
    class Histogram < Series
      # @param bounds [Array<Numeric>] seconds, ascending
      def initialize(name, bounds:, **options)
        super(name, **options)
        @bounds = bounds.map(&:to_f).freeze
      end

      # @param seconds [Numeric] a negative one, of a clock that was set back, counts as none; one that isn't finite is left out
      # @param values [Array] of the labels, in their order
      # @return [void]
      # @raise [ArgumentError] another number of values than of labels, seconds that are no number
      def observe(seconds, *values)
        seconds.is_a?(Numeric) or raise ArgumentError, "seconds is #{seconds.inspect[0, 60]}: give a number"
        return unless seconds.finite?

        seconds = [seconds.to_f, 0.0].max
        change(values) do |value|
          value ||= Distribution.new(@bounds, Array.new(@bounds.size, 0), 0.0, 0)
          index = @bounds.bsearch_index { |bound| bound >= seconds }
          value.counts[index] += 1 if index
          value.sum += seconds
          value.count += 1
          value
        end
      end

      private

      def type
        :histogram
      end

      # Kept one by one, read far less often than written: made cumulative here.
      def copy(value)
        Distribution.of_counts(@bounds, value.counts, value.sum, value.count)
      end
    end
  end
end
