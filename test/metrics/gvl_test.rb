# frozen_string_literal: true

require "harness/trap_test"
require "metrics/promtool"

# What the native part says, as metrics: each test in a process of its own.
class MetricsGvlTest < Harness::TrapTest
  include Metrics::Promtool

  def families = Headway::Metrics.collect.to_h { |family| [family.name, family] }

  def test_figures_agree_with_the_statistics
    with_headway do
      beside_cpu_threads(2) { 50.times { sleep 0.002 } }
      before = Headway.stats[:process]
      found = families
      after = Headway.stats[:process]
      { "ruby_gvl_wait_seconds" => :wait, "ruby_gvl_hold_seconds" => :hold }.each do |name, key|
        value = found.fetch(name).series.fetch({})
        assert_includes before[key][:count]..after[key][:count], value.count
        assert_equal value.counts.sort, value.counts
        assert_operator value.counts.last, :<=, value.count
      end
      # A hold counts when it has ended; main's is still going on.
      main = Headway.stats[:threads].find { |row| row[:name] == "main" }[:running]
      assert_includes (before[:running] - main)..after[:running], found["ruby_gvl_hold_seconds"].series[{}].sum
      assert_operator found["ruby_gvl_preemptions_total"].series[{}], :>, 0
    end
  end

  # Rank of the 99th percentile: at least 99 % of all are at most that long, and so in the bucket of the next bound.
  def test_buckets_hold_what_the_percentiles_say
    with_headway(:observe) do
      beside_cpu_threads(1) { 30.times { sleep 0.001 } }
      wait = Headway.stats[:process][:wait]
      value = families.fetch("ruby_gvl_wait_seconds").series.fetch({})
      index = value.bounds.index { |bound| bound * 0.99 >= wait[:p99] } || value.bounds.size
      assert_operator value.counts.fetch(index, value.count), :>=, (0.98 * wait[:count]).floor
    end
  end

  def test_threads_by_state_are_the_living_ones
    with_headway do
      beside_io_threads(3, pause: 5) do |threads|
        await("sleeping threads") { families.fetch("ruby_gvl_threads").series.fetch({ state: "suspended" }) >= 3 }
        assert_operator families.fetch("ruby_gvl_threads").series.values.sum, :>=, 4
        threads.each(&:wakeup)
      end
    end
  end

  def test_all_of_it_passes_promtool
    with_headway(:fair_poll) do
      Headway::Metrics.request("GET /orders/:id", running: 0.01, ready: 0.002, suspended: 0.1)
      Headway::Metrics.job("Export", running: 1.5, ready: 0, suspended: 0)
      refute_match(/queue/, Headway::Metrics.text, "nobody said how long any stood in one")
      Headway::Metrics.request("GET /", running: 0, ready: 0, suspended: 0, queued: 0.3)
      Headway::Metrics.job("Export", running: 0, ready: 0, suspended: 0, queued: 9)
      text = Headway::Metrics.text
      assert_valid_metrics(text)
      assert_match(/^ruby_gvl_request_wait_seconds_bucket\{request="GET \/orders\/:id",le="0.0025"\} 1$/, text)
      assert_match(/^ruby_gvl_job_seconds_total\{job="Export",state="running"\} 1\.5$/, text)
      assert_match(/^headway_request_queue_seconds_bucket\{le="0.25"\} 0\nheadway_request_queue_seconds_bucket\{le="0.5"\} 1$/, text)
      assert_match(/^headway_job_queue_seconds_bucket\{le="\+Inf"\} 1\nheadway_job_queue_seconds_sum 9\.0\nheadway_job_queue_seconds_count 1$/, text)
      assert_match(/^headway_info\{.*policy="fair",preempt="poll",.*\} 1$/, text)
    end
  end

  def test_counting_begins_anew_with_a_start
    waits = -> { families.fetch("ruby_gvl_wait_seconds").series.fetch({}).count }
    with_headway do
      500.times { sleep 0.0001 }
      assert_operator waits.call, :>=, 500
    end
    with_headway { assert_operator waits.call, :<, 500 }
    assert_match(/^headway_info\{.*\} 0$/, Headway::Metrics.text)
  end
end
