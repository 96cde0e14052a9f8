# frozen_string_literal: true

module Headway
  # The little statistics that benchmarks, estimates and Autotune need.
  # @api private
  module Statistics
    # A ratio and the bounds of its interval.
    Ratio = Data.define(:ratio, :low, :high)

    # How often an interval holds the true ratio.
    CONFIDENCE = 0.95
    private_constant :CONFIDENCE

    module_function

    # @param samples [Array<Numeric>] not empty
    # @return [Numeric] the middle sample, or the mean of the two in the middle
    def median(samples)
      sorted = samples.sort
      middle = sorted.size / 2
      sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
    end

    # @param samples [Array<Numeric>] not empty
    # @param fraction [Float] from 0 to 1
    # @return [Numeric] the smallest sample that at least this fraction of all samples does not exceed
    def quantile(samples, fraction)
      sorted = samples.sort
      sorted[[(fraction * sorted.size).ceil - 1, 0].max]
    end

    # @param samples [Array<Numeric, nil>] a nil was not measured and is left out
    # @return [Hash] median, min, max and n; all but n are nil when nothing was measured
    def summary(samples)
      known = samples.compact
      return { "median" => nil, "min" => nil, "max" => nil, "n" => 0 } if known.empty?

      { "median" => median(known), "min" => known.min, "max" => known.max, "n" => known.size }
    end

    # The median of the ratios of pairs that were measured side by side, with a bootstrap interval. What slowed the machine slowed both
    # halves of a pair, so the interval is far narrower than one of the ratio of two medians would be.
    #
    # @param samples [Array<Numeric>]
    # @param base [Array<Numeric>] what the samples are compared with, one by one
    # @param resamples [Integer] of the bootstrap
    # @param seed [Integer] the same one, the same interval
    # @return [Ratio]
    # @raise [ArgumentError] not as many of both
    def paired_ratio(samples, base, resamples: 2_000, seed: 1)
      raise ArgumentError, "#{samples.size} samples cannot be paired with #{base.size}" unless samples.size == base.size

      ratios = samples.zip(base).map { |sample, other| sample / other.to_f }
      random = Random.new(seed)
      draws = Array.new(resamples) { median(resample(ratios, random)) }
      tail = (1 - CONFIDENCE) / 2
      Ratio.new(ratio: median(ratios), low: quantile(draws, tail), high: quantile(draws, 1 - tail))
    end

    def resample(samples, random) = Array.new(samples.size) { samples[random.rand(samples.size)] }

    private_class_method :resample
  end
end
