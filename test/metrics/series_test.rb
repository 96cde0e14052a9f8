# frozen_string_literal: true

require "test_helper"
require "headway"
require "metrics/promtool"

# What the program adds to, and how it is written down.
class MetricsSeriesTest < Minitest::Test
  include Headway::Metrics
  include Metrics::Promtool

  def counter(**options) = Counter.new("ruby_gvl_things_total", help: "Things.", labels: %i[thing], most: 3, **options)

  def histogram(**options) = Histogram.new("ruby_gvl_x_seconds", help: "X.", labels: [], most: 1, bounds: [0.1, 1], **options)

  def test_a_counter_adds_up_by_labels
    things = counter
    things.add("a")
    things.add("a", by: 2.5)
    things.add("b", by: -1)
    assert_equal({ { thing: "a" } => 3.5 }, things.family.series)
  end

  def test_what_would_be_lost_in_another_series_or_is_no_number_is_refused
    things = counter
    messages = [-> { things.add("a", "b") }, -> { things.add }, -> { things.add("a", by: "3") }, -> { histogram.observe("3") }].map do |wrong|
      assert_raises(ArgumentError, &wrong).message
    end
    assert_equal ["ruby_gvl_things_total has the labels thing: give a value for each, not 2", "ruby_gvl_things_total has the labels thing: give a value for each, not 0",
                  'by is "3": give a number', 'seconds is "3": give a number'], messages
    assert_empty things.family.series
  end

  def test_what_comes_after_the_bound_is_counted_together
    things = counter
    100.times { |index| things.add("thing #{index}") }
    series = things.family.series
    assert_equal 4, series.size
    assert_equal 97, series[{ thing: "(others)" }]
    things.add("thing 0")
    assert_equal 2, things.family.series[{ thing: "thing 0" }]
  end

  def test_sets_of_labels_are_bounded_whichever_of_them_the_program_makes_up
    things = counter(labels: %i[kind thing], most: 10)
    100.times { |number| things.add("a", number) }
    series = things.family.series
    assert_equal 21, series.size
    assert_equal [100, 80], [series.values.sum, series[{ kind: "(others)", thing: "(others)" }]]
  end

  def test_a_histogram_is_cumulative_and_takes_any_length
    times = histogram
    [0.05, 0.1, 0.2, 5, -1].each { |seconds| times.observe(seconds) }
    value = times.family.series[{}]
    assert_equal [3, 4], value.counts
    assert_equal 5, value.count
    assert_in_delta 5.35, value.sum
  end

  def test_what_is_not_finite_spoils_no_series
    things = counter
    times = histogram
    [Float::NAN, Float::INFINITY, 2].each { |number| things.add("a", by: number) }
    [Float::NAN, Float::INFINITY, 2].each { |number| times.observe(number) }
    assert_equal({ { thing: "a" } => 2 }, things.family.series)
    assert_equal [2.0, 1], times.family.series[{}].then { |value| [value.sum, value.count] }
  end

  def test_threads_lose_nothing
    things = counter
    Array.new(8) { Thread.new { 500.times { things.add("a") } } }.each(&:join)
    assert_equal 4000, things.family.series[{ thing: "a" }]
  end

  def test_a_forked_child_begins_at_zero
    things = counter
    things.add("a", by: 7)
    reader, writer = IO.pipe
    pid = fork do
      things.add("a")
      writer.write(things.family.series.values.sum)
      exit!(0)
    end
    writer.close
    Process.wait(pid)
    assert_equal "1", reader.read
    assert_equal 7, things.family.series[{ thing: "a" }]
  ensure
    reader&.close
  end

  def test_labels_of_any_kind_are_written_so_that_prometheus_reads_them
    things = counter(most: 10)
    ["quote \" back \\ line \n", "\xFF\xFE".b, "ümlaut", :symbol, nil, "a" * 500].each { |thing| things.add(thing) }
    text = Exposition.text([things.family])
    assert_valid_metrics(text)
    assert_includes text, %(thing="quote \\" back \\\\ line \\n")
  end

  def test_a_source_that_fails_is_left_out_and_named
    broken = Object.new
    def broken.families = raise("boom")
    _, err = capture_io do
      Headway::Metrics.register(broken)
      assert_includes Headway::Metrics.text, "ruby_gvl_wait_seconds_bucket"
    end
    assert_match(/\Aheadway: the metrics of Object are missing: boom$/, err)
  ensure
    Headway::Metrics.instance_variable_get(:@sources).delete(broken)
  end
end
