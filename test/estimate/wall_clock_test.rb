# frozen_string_literal: true

require "test_helper"
require "headway"

# What the wall clock's method makes of speed-ups whose yield fraction is known.
class WallClockTest < Minitest::Test
  WallClock = Headway::Estimate::WallClock
  MVA = Headway::Model::MVA

  def test_the_extremes
    [2, 4, 16].each do |threads|
      assert_in_delta 0, WallClock.yield_fraction(threads, 1.0)
      assert_in_delta 0, WallClock.yield_fraction(threads, 0.5)
      assert_in_delta 1, WallClock.yield_fraction(threads, threads.to_f)
      assert_in_delta 1, WallClock.yield_fraction(threads, threads + 1.0)
      assert_operator WallClock.yield_fraction(threads, threads * 0.98), :>, 0.92
    end
  end

  # The gist's own figures: 1.510599 and 0.753924 s, 1.609804 and 1.653363 s.
  def test_the_gist
    assert_in_delta 1, WallClock.gained(2, 1.510599 / 0.753924)
    assert_in_delta 0, WallClock.gained(2, 1.609804 / 1.653363)
  end

  # Calls that are all alike take turns perfectly: as many at once as there are, or as keep the GVL busy.
  def test_mixes_of_calls_that_are_alike
    [0.1, 0.25, 0.5, 0.75, 0.9].each do |fraction|
      assert_in_delta fraction, WallClock.yield_fraction(16, [16.0, 1 / (1 - fraction)].min), 0.03
    end
    assert_in_delta 0.25, WallClock.yield_fraction(2, 1 / 0.75), 1e-9
    assert_in_delta 0.5, WallClock.gained(2, 1 / 0.75), 1e-9, "the gist's formula doubles it"
  end

  def test_mixes_of_calls_of_random_length
    [0.1, 0.25, 0.5, 0.75, 0.9].each do |fraction|
      demands = Headway::Model::Demands.new(gvl_s: 1 - fraction, free_cpu_s: 0.0, delay_s: fraction)
      assert_in_delta fraction, WallClock.yield_fraction(16, MVA.throughput(demands, 16, 1)), 0.03
    end
  end

  def test_more_speedup_is_more_yield
    [2, 5, 16].each do |threads|
      fractions = (1..200).map { |step| WallClock.yield_fraction(threads, 1 + (step * (threads - 1) / 200.0)) }
      assert_equal fractions.sort, fractions
    end
  end
end
