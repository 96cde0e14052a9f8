# frozen_string_literal: true

require "harness/recorder_test"

# Live holder attribution: who waited because of whom, without any recording.
class AttributionTest < Harness::RecorderTest
  test_under Harness::Modes::ALL.keys, "what a thread waited for adds up to its waits" do
    beside_cpu_threads(3) do
      beside_io_threads(2) do
        sleep 0.3
        stats = Headway.stats
        stats[:threads].select { |row| row[:alive] }.each do |row|
          sum = row[:waited_for].sum { |entry| entry[:seconds] }
          assert_in_delta row[:ready], sum, 1e-6, row[:name]
        end
      end
    end
  end

  test_under Harness::Modes::ALL.keys, "the hog is named" do
    beside_cpu_threads(1) do
      waiter = Thread.new { Thread.current.name = "waiter"; sleep 0.001 while true }
      sleep 0.4 # looks take the GVL, too: not many
      rows = await("some waits", pause: 0.1) do
        rows = Headway.stats[:threads].to_h { |row| [row[:name], row] }
        rows if rows.dig("waiter", :wait, :count).to_i >= 4 && rows["waiter"][:waited_for].any? { |entry| entry[:name] == "cpu-0" }
      end
      waiter.kill.join
      for_whom = rows["waiter"][:waited_for].reject { |entry| entry[:name].nil? }
      assert_equal "cpu-0", for_whom.max_by { |entry| entry[:seconds] }[:name]
      assert_operator rows["cpu-0"][:caused], :>, 0
      assert_operator rows["cpu-0"][:caused], :>=, rows["waiter"][:waited_for].find { |entry| entry[:name] == "cpu-0" }[:seconds] * 0.9
    end
  end

  def test_caused_and_waited_agree
    with_headway(:observe) do
      looked = false # what a thread that has ended waited for nobody for is told no more
      threads = Array.new(3) { |index| Thread.new { compute(0.01) until looked }.tap { |thread| thread.name = "t#{index}" } }
      sleep 0.5
      living = Headway.stats[:threads]
      nobody = living.select { |row| row[:alive] }.flat_map { |row| row[:waited_for] }.select { |entry| entry[:name].nil? }
      caused = living.sum { |row| row[:caused] }
      waited = living.sum { |row| row[:ready] }
      looked = true
      threads.each(&:join)
      assert_in_delta waited, caused + nobody.sum { |entry| entry[:seconds] }, waited * 0.05 + 0.002
    end
  end

  def test_more_threads_than_slots
    with_headway(:observe) do
      threads = Array.new(100) { Thread.new { sleep 0.2; compute(0.002) } }
      300.times { Thread.new { nil }.join }
      sleep 0.25
      Headway.stats[:threads].select { |row| row[:alive] }.each do |row|
        assert_in_delta row[:ready], row[:waited_for].sum { |entry| entry[:seconds] }, 1e-6
      end
      threads.each(&:join)
    end
  end

  # What those caused that share a slot nobody knows apart, nor what all of their name did.
  def test_what_too_many_threads_caused_is_unknown_when_they_have_ended_too
    with_headway(:observe) do
      few = Array.new(2) { Thread.new { compute(0.02) }.tap { |thread| thread.name = "few" } }
      few.each(&:join)
      over = false
      crowd = Array.new(100) { Thread.new { sleep 0.01 until over; compute(0.001) }.tap { |thread| thread.name = "crowd" } }
      assert_operator Headway.stats[:threads].count { |row| row[:name] == "crowd" && row[:caused].nil? }, :>, 30
      over = true
      crowd.each(&:join)
      rows = Headway.stats[:threads].to_h { |row| [row[:name], row] }
      assert_equal [2, 100], [rows["few"][:count], rows["crowd"][:count]]
      assert_kind_of Float, rows["few"][:caused]
      assert_nil rows["crowd"][:caused]
    end
  end

  def test_one_threads_row
    with_headway(:fair_signal) do
      beside_cpu_threads(1) do |_, threads|
        sleep 0.05
        row = Headway.thread(threads.first).stats
        assert_equal %w[cpu-0], [row[:name]]
        assert_kind_of Array, row[:waited_for]
        assert_kind_of Integer, row[:number]
      end
    end
    assert_nil Headway.thread(Thread.new { nil }.tap(&:join)).stats
  end
end
