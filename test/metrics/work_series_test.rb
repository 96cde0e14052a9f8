# frozen_string_literal: true

require "test_helper"
require "headway"

# What requests and jobs add to, class by class.
class WorkSeriesTest < Minitest::Test
  include Headway::Metrics

  def series(**options) = WorkSeries.new(:job, **options)

  def waits(series) = series.families.first.series
  def seconds(series) = series.families[1].series
  def queues(series) = series.families[2].series

  def test_each_wait_is_in_its_bucket
    jobs = series
    lengths = [0, *BOUNDS, *BOUNDS.map { |bound| bound + 1e-6 }, 1e6]
    lengths.each { |length| jobs.observe("Mail", running: 1, ready: length, suspended: 0.25) }
    value = waits(jobs)[{ job: "Mail" }]
    assert_equal(BOUNDS.map { |bound| lengths.count { |length| length <= bound } }, value.counts)
    assert_equal lengths.size, value.count
    assert_in_delta lengths.sum, value.sum, 1e-6
    assert_in_delta lengths.size, seconds(jobs)[{ job: "Mail", state: "running" }], 1e-6
    assert_in_delta lengths.size / 4.0, seconds(jobs)[{ job: "Mail", state: "suspended" }], 1e-6
  end

  def test_what_no_clock_says_counts_as_none_and_what_is_no_number_not_at_all
    jobs = series
    jobs.observe("Mail", running: -1, ready: Float::NAN, suspended: 1)
    assert_raises(TypeError) { jobs.observe("Mail", running: 1, ready: "1", suspended: 1) }
    jobs.observe("Mail", running: 0, ready: -Float::INFINITY, suspended: 1)
    assert_equal [0.0, 0.0, 2.0], %w[running ready suspended].map { |state| seconds(jobs)[{ job: "Mail", state: state }] }
    assert_equal [2], waits(jobs).values.map(&:count)
    assert_equal [2], waits(jobs).values.map { |value| value.counts.first }
  end

  def test_what_stood_in_a_queue_is_counted_over_all_classes_where_that_is_known
    jobs = series
    observe = ->(name, queued) { jobs.observe(name, running: 0, ready: 0, suspended: 0, queued: queued) }
    observe["Mail", nil]
    assert_empty queues(jobs)
    [["Mail", 0.3], ["Export", 7], ["Mail", -1]].each { |name, queued| observe[name, queued] }
    assert_raises(TypeError) { observe["Mail", "1"] }
    assert_equal [3, 7.3, 1, 2], queues(jobs).fetch({}).then { |value| [value.count, value.sum, value.counts.first, value.counts.last] }
  end

  def test_classes_are_bounded_and_their_names_can_be_written
    jobs = series(classes: 3)
    ["\xFF".b, :Mail, nil, *Array.new(10) { |number| "Job#{number}" }, "Mail"].each do |name|
      jobs.observe(name, running: 0, ready: 0, suspended: 0)
    end
    counts = waits(jobs).transform_keys { |labels| labels[:job] }.transform_values(&:count)
    assert_equal({ "\uFFFD" => 1, "Mail" => 2, "" => 1, "(others)" => 10 }, counts)
  end

  # Under a mask, which the fibers of an event loop share, nothing may block.
  def test_who_comes_when_there_are_as_many_as_may_be_waits_for_nobody
    jobs = series(classes: 1)
    count = ->(name) { jobs.observe(name, running: 0, ready: 0, suspended: 0) }
    %w[a b].each(&count)
    jobs.instance_variable_get(:@lock).synchronize { assert Thread.new { %w[c d a].each(&count) }.join(20) }
    assert_equal [2, 3], waits(jobs).values.map(&:count)
  end

  def test_works_are_counted_as_they_say_of_themselves
    works = Headway.start(policy: :observe) && Array.new(3) do
      Headway::Work.start(:job, "Mail").tap { |work| sleep(0.001) && work.finish }
    end
    jobs = series
    works.each { |work| jobs.add(work) }
    assert_raises(TypeError) { Headway::Native::WorkSums.new([]).add(Object.new, Headway::Native::WorkSums.new([])) }
    %i[running suspended].each do |state|
      assert_in_delta works.sum(&state), seconds(jobs)[{ job: "Mail", state: state.to_s }], 1e-6
    end
    assert_in_delta works.sum(&:waiting), waits(jobs)[{ job: "Mail" }].sum, 1e-6
  ensure
    Headway.stop
  end

  def test_threads_lose_nothing
    jobs = series
    Array.new(8) do |number|
      Thread.new { 5000.times { |time| jobs.observe("Job#{(number + time) % 20}", running: 0, ready: 0, suspended: 0) } }
    end.each(&:join)
    assert_equal [2000] * 20, waits(jobs).values.map(&:count)
  end

  def test_a_forked_child_begins_at_zero
    jobs = series
    jobs.observe("Mail", running: 0, ready: 7, suspended: 0, queued: 3)
    reader, writer = IO.pipe
    pid = fork do
      jobs.add(Headway::Work.start(:job, "Mail").tap(&:finish)) # the first to find that it is another process
      jobs.observe("Mail", running: 0, ready: 1, suspended: 0)
      writer.write(waits(jobs).values.sum(&:sum), " ", waits(jobs).values.sum(&:count), " ", queues(jobs).size)
      writer.close
      exit!(0)
    end
    writer.close
    Process.wait(pid)
    assert_equal "1.0 2 0", reader.read
    assert_equal [7.0, 3.0], [waits(jobs), queues(jobs)].map { |values| values.values.sum(&:sum) }
  ensure
    reader&.close
  end
end
