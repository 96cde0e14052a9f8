# frozen_string_literal: true

require "test_helper"
require "headway/report"
require "headway/report/timeline"
require "report/made_trace"

class TimelineTest < Minitest::Test
  include Leb128

  Timeline = Headway::Report::Timeline

  # Any schedule in which one thread at a time runs: each wait is split among holders as the slow way does it.
  def test_holders_against_the_slow_way
    random = Random.new(7)
    20.times do
      trace = random_trace(random)
      data = trace.to_h
      timeline = Timeline.new(trace, data[:threads])
      timeline.each_lane { |thread, lane| assert_same_wait data[:threads][thread], waits(timeline, thread, lane) }
    end
  end

  def test_segments_without_length_are_left_out
    lane = { start_s: 1.0, bytes: [0 << 2, (5 << 2) | 1, 0 << 2, (300 << 2) | 2].map { |number| leb128(number) }.join.b }
    found = []
    Timeline.each_segment(lane) { |*segment| found << segment }

    assert_equal [[10_000_000, 10_000_005, 1], [10_000_005, 10_000_305, 2]], found
  end

  private

  # One of the threads runs in each slot; the others are ready, suspended or not there.
  def random_trace(random)
    threads = Array.new(1 + random.rand(6)) { |id| { name: "t#{id}", segments: [] } }
    60.times do
      seconds = random.rand(1..10_000) / 1e6
      holder = random.rand(threads.size + 1)
      threads.each_with_index do |thread, id|
        thread[:segments] << [id == holder ? :running : %i[ready suspended absent].sample(random: random), seconds]
      end
    end
    MadeTrace.new(threads: threads)
  end

  def waits(timeline, thread, lane)
    sums = Hash.new(0)
    Timeline.each_segment(lane) do |from, to, state|
      next unless state == Timeline::READY

      holders = timeline.holders(thread, from, to)
      assert_equal to - from, holders.sum(&:last)
      assert_equal holders.map(&:last).sort.reverse, holders.map(&:last)
      holders.each { |holder, ticks| sums[holder] += ticks }
    end
    sums
  end

  def assert_same_wait(row, sums)
    expected = row[:waited_for].to_h { |part| part.values_at(:thread, :s) }

    (expected.keys | sums.keys).each { |holder| assert_in_delta expected.fetch(holder, 0.0), sums[holder] / 1e7, 1e-4 }
  end
end
