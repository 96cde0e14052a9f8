# frozen_string_literal: true

require_relative "bench_process"

# `headway bench offload`, run briefly.
class BenchOffloadTest < Minitest::Test
  include BenchProcess

  FIGURES = %w[total_s loop_gap_p99_ms loop_gap_max_ms].freeze
  HANDED_OVER = RUBY_VERSION >= "3.4" # before that only the arms without a hook can run

  def time_limit = 120

  def test_the_arms
    result = bench_json("offload", "--fibers", "2", "--mib", "1", "--runs", "1", "--no-small", "--arms", "no_hook,thread_per_op,fixed_pool,headway,headway_fair")
    assert_equal HANDED_OVER ? %w[no_hook thread_per_op fixed_pool headway headway_fair] : %w[no_hook], result["arms"].keys
    result["arms"].each_value do |figures|
      assert_equal FIGURES, figures.keys
      assert_operator figures["loop_gap_p99_ms"]["median"], :<=, figures["loop_gap_max_ms"]["median"]
    end
    refute result.key?("small")
    assert_equal FIGURES, result["ratios"].fetch("headway_fair").keys if HANDED_OVER
  end

  def test_short_operations
    result = bench_json("offload", "--fibers", "1", "--mib", "1", "--runs", "1", "--rounds", "1", "--arms", "no_hook")
    assert_equal ["File.stat", "deflate 100 B", "deflate 4 KiB", "deflate 64 KiB", "deflate 1 MiB", "Dir.glob", "open, close", "read 20 KB"],
                 result["small"].keys
    result["small"].each_value do |arms|
      assert_equal %w[us ratio], arms.fetch("no_hook").keys
      arms["no_hook"].each_value { |figure| assert_operator figure["median"], :>, 0 }
    end
    assert_equal FIGURES, result["arms"]["no_hook"].keys
  end

  def test_echo
    result = bench_json("offload", "--fibers", "1", "--mib", "1", "--runs", "1", "--rounds", "1", "--no-small", "--echo", "--arms", HANDED_OVER ? "headway" : "no_hook")
    assert_equal [FIGURES], result["arms"].values.map(&:keys)
    assert_equal HANDED_OVER ? %w[headway] : [], result.fetch("echo", {}).keys # Async is there with the hook
    result.fetch("echo", {}).each_value do |figures|
      assert_equal %w[requests_per_s cpu_us_per_request ratio_to_async ratio_with_scheduler], figures.keys
      figures.each_value { |figure| assert_operator figure["median"], :>, 0 }
    end
  end

  def test_the_table
    result = bench("offload", "--fibers", "1", "--mib", "1", "--runs", "1", "--rounds", "1", "--arms", "no_hook")
    assert_predicate result, :success?, result.to_s
    assert_match(/^no_hook +[\d.]+ +[\d.]+ +[\d.]+$/, result.out)
    assert_match(/^File.stat +[\d.]+ \([\d.]+\)$/, result.out)
  end

  def test_bad_usage
    assert_refused(/--fibers x: give a whole number/, "offload", "--fibers", "x")
  end
end
