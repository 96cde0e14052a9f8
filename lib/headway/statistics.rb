# frozen_string_literal: true

module Headway
  # The little statistics that benchmarks, estimates and Autotune need.
  # @api private
  module Statistics
    # A ratio and the bounds of its interval.
    Ratio = Data.define(:ratio, :low, :high)

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

    # The ratio of the medians of two sets of independent samples, with a bootstrap interval.
    #
    # @param samples [Array<Numeric>]
    # @param base [Array<Numeric>] what the samples are compared with
    # @return [Ratio]
    def ratio(samples, base, confidence: 0.95, resamples: 2_000, seed: 1)
      random = Random.new(seed)
      draws = Array.new(resamples) { median(resample(samples, random)) / median(resample(base, random)).to_f }
      interval(median(samples) / median(base).to_f, draws, confidence)
    end

    # The same for samples measured side by side: the median of the ratios of the pairs. What slowed the machine slowed
    # both halves of a pair, so the interval is far narrower than that of {ratio}.
    #
    # @param samples [Array<Numeric>]
    # @param base [Array<Numeric>] as many
    # @return [Ratio]
    def paired_ratio(samples, base, confidence: 0.95, resamples: 2_000, seed: 1)
      raise ArgumentError, "#{samples.size} samples cannot be paired with #{base.size}" unless samples.size == base.size

      ratios = samples.zip(base).map { |sample, other| sample / other.to_f }
      random = Random.new(seed)
      interval(median(ratios), Array.new(resamples) { median(resample(ratios, random)) }, confidence)
    end

    def resample(samples, random) = Array.new(samples.size) { samples[random.rand(samples.size)] }

    def interval(ratio, draws, confidence)
      tail = (1 - confidence) / 2
      Ratio.new(ratio:, low: quantile(draws, tail), high: quantile(draws, 1 - tail))
    end

    private_class_method :resample, :interval
  end
end
