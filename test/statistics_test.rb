# frozen_string_literal: true

require "test_helper"
require "headway/statistics"

class StatisticsTest < Minitest::Test
  Statistics = Headway::Statistics

  def setup
    @random = Random.new(20_861)
  end

  def test_median_is_what_half_of_the_samples_do_not_exceed
    200.times do
      samples = random_samples(1 + @random.rand(30))
      median = Statistics.median(samples)
      assert_operator samples.count { _1 < median }, :<=, samples.size / 2
      assert_operator samples.count { _1 > median }, :<=, samples.size / 2
    end
  end

  def test_median_of_an_even_number_lies_halfway
    assert_in_delta 2.5, Statistics.median([4, 1, 3, 2])
    assert_equal 3, Statistics.median([5, 3, 1])
  end

  def test_quantile_is_the_first_that_enough_samples_do_not_exceed
    200.times do
      samples = random_samples(1 + @random.rand(50))
      fraction = @random.rand
      slow = samples.sort.find { |candidate| samples.count { _1 <= candidate } >= fraction * samples.size }
      assert_equal slow, Statistics.quantile(samples, fraction)
    end
  end

  def test_summary_leaves_out_what_was_not_measured
    assert_equal({ "median" => 2, "min" => 1, "max" => 3, "n" => 3 }, Statistics.summary([3, nil, 1, 2]))
    assert_equal({ "median" => nil, "min" => nil, "max" => nil, "n" => 0 }, Statistics.summary([nil]))
  end

  def test_ratio_of_constant_samples_has_no_spread
    ratio = Statistics.paired_ratio([3.0] * 5, [2.0] * 5)
    assert_equal [1.5, 1.5, 1.5], ratio.to_h.values
  end

  def test_paired_ratio_sees_through_what_slows_both_halves
    load_factors = Array.new(20) { 1 + @random.rand * 10 }
    paired = Statistics.paired_ratio(load_factors.map { _1 * 0.9 }, load_factors)
    assert_in_delta 0.9, paired.low, 1e-9
    assert_in_delta 0.9, paired.high, 1e-9
  end

  def test_pairs_need_two_halves
    assert_raises(ArgumentError) { Statistics.paired_ratio([1, 2], [1]) }
  end

  # The interval of 95 % must hold the truth about that often; 80 % of a hundred trials is far below chance.
  def test_intervals_hold_the_true_ratio
    held = 100.times.count do |seed|
      samples, base = [1.2, 1.0].map { |center| Array.new(25) { center * (1 + ((@random.rand - 0.5) * 0.4)) } }
      ratio = Statistics.paired_ratio(samples, base, resamples: 300, seed:)
      assert_operator ratio.low, :<=, ratio.high
      ratio.low <= 1.2 && 1.2 <= ratio.high
    end
    assert_operator held, :>=, 80
  end

  def test_the_same_samples_give_the_same_interval
    samples, base = Array.new(2) { random_samples(9).map { _1 + 1 } }
    assert_equal Statistics.paired_ratio(samples, base), Statistics.paired_ratio(samples, base)
  end

  private

  def random_samples(count) = Array.new(count) { @random.rand(10).to_f }
end
