# frozen_string_literal: true

require_relative "../statistics"
require_relative "window"

module Headway
  class Autotune
    # Windows under one setting against windows under another: better, worse or the same. What counts is in how many pairs of a window
    # before and one after the later one is better (the rank-sum test, Mann and Whitney, 1947), and that the medians differ by more than
    # a little: one odd window decides nothing, and figures may be distributed as they like.
    class Comparison
      # A class needs so many works in each window to count by itself.
      CLASS_LEAST = 30
      # How much a figure must change, as a part of it.
      P99_LEAST = 0.1
      RATE_LEAST = 0.05
      # Standard deviations from what chance would have: of five windows and five, all must be better.
      CERTAINTY = 2.5
      # Beyond what was seen before and so many times the least: worse, even if not in every window.
      CLEARLY = 3

      # One figure in windows before and after. The scale is what a change is measured by when there was next to nothing.
      Measure = Data.define(:text, :unit, :before, :after, :least, :rises, :scale) do
        # @return [Float] gain, as a part of what was before; negative: a loss
        def gain
          change = (median(after) - median(before)) / [median(before), scale].max
          rises ? change : -change
        end

        def better?(certainty) = gain >= least && certainty_of_gain >= certainty

        def worse? = gain <= -least && (certainty_of_gain <= -CERTAINTY || (gain <= -least * CLEARLY && outside?))

        # @return [String]
        def to_s = "#{text} #{said(before)} -> #{said(after)}#{unit}"

        private

        def certainty_of_gain
          pairs = before.size * after.size
          better = before.sum { |was| after.sum { |is| is == was ? 0.5 : ((is > was) == rises ? 1 : 0) } }
          (better - (pairs / 2.0)) / Math.sqrt(pairs * (before.size + after.size + 1) / 12.0)
        end

        def outside? = rises ? median(after) < before.min : median(after) > before.max

        def said(values) = format("%.4g", median(values))

        def median(values) = Statistics.median(values).to_f
      end
      private_constant :Measure

      # @param before [Array<Window>]
      # @param after [Array<Window>]
      # @param certainty [Numeric] standard deviations for something to be better
      def initialize(before, after, certainty: CERTAINTY)
        @before = before
        @after = after
        measures = all_measures
        @worst = measures.select(&:worse?).min_by(&:gain)
        @best = measures.select { |measure| measure.better?(certainty) }.max_by(&:gain)
      end

      # @return [:better, :worse, :same] worse in anything is worse
      def verdict
        if @worst then :worse
        else @best ? :better : :same
        end
      end

      # @return [String] the figure that tells
      def reason
        if @worst then "#{@worst} is worse"
        else @best ? "#{@best} is better" : "no figure differs by more than it does anyway"
        end
      end

      # @return [Boolean] whether something got so much worse that nobody need see more of it
      def alarming?
        !@worst.nil? && @worst.gain <= -@worst.least * CLEARLY
      end

      private

      def all_measures
        [*names(@before).map { |name| rate(name) }, *names([*@before, *@after]).map { |name| p99(name) },
         measure("all work", " a second", RATE_LEAST, rises: true, &:per_s),
         measure("failed work", " of all", 0.5, scale: 0.02, &:failed_share), backlog].compact
      end

      # Classes that come often enough in each of the windows.
      def names(windows)
        windows.map { |window| window.classes.select { |_, kind| kind.count >= CLASS_LEAST }.keys }.inject(:&)
      end

      # Of every class that was there before: one that has become rare or gone is worse off.
      def rate(name)
        measure(name, " a second", RATE_LEAST, rises: true) { |window| (window.classes[name]&.count || 0) / window.seconds.to_f }
      end

      def p99(name) = measure("p99 of #{name}", " ms", P99_LEAST) { |window| window.classes[name].p99_s * 1000 }

      def backlog
        measure("backlog", "", P99_LEAST, scale: 10, &:backlog) if [*@before, *@after].all?(&:backlog)
      end

      def measure(text, unit, least, rises: false, scale: 1e-9, &figure)
        Measure.new(text: text, unit: unit, before: @before.map(&figure), after: @after.map(&figure), least: least, rises: rises,
                    scale: scale)
      end
    end
  end
end
