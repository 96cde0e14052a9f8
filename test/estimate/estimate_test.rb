# frozen_string_literal: true

require "test_helper"
require "headway"
require "harness/measured"
require "zlib"

# Real work, measured in this process. What the events say leaves out what a busy machine adds, so it can be asserted; of wall
# clocks only what holds on any machine is.
class EstimateTest < Minitest::Test
  include Harness::Measured
  def setup
    skip Headway.unsupported_reason unless Headway.supported?
  end

  def test_sleep_yields
    measured do
      result = estimate { sleep(0.001) }
      assert_operator result[:event_yield_pct][:median], :>, 97
      assert_operator result[:io_pct][:median], :>, 85
      assert_operator result[:knee_threads][:median], :>, 30
      assert_in_delta 1, result[:releases_per_call][:median], 0.1
    end
  end

  def test_arithmetic_does_not
    measured do
      result = estimate { 2 + 2 }
      assert_operator result[:event_yield_pct][:median], :<, 3
      assert_operator result[:knee_threads][:median], :<, 1.05
      assert_in_delta 0, result[:releases_per_call][:median], 0.01
    end
  end

  def test_deflate_is_computing_without_the_gvl
    measured do
      data = Random.new(1).bytes(1 << 20)
      result = estimate { Zlib.deflate(data) }
      assert_operator result[:gvl_free_cpu_pct][:median], :>, 70
      assert_operator result[:io_pct][:median], :<, 10
      assert_equal 2, result[:wall][:threads], "more threads than cores would measure the cores" if Etc.nprocessors == 2
    end
  end

  # A sleep lasts a tenth of a millisecond longer than it should.
  def test_mixes_of_known_proportions
    measured do
      [[3, 1], [2, 2], [1, 3]].each do |compute_ms, sleep_ms|
        result = estimate(concurrency: [1]) do
          sleep(sleep_ms / 1000.0)
          compute(compute_ms / 1000.0)
        end
        assert_in_delta 100.0 * sleep_ms / (sleep_ms + compute_ms), result[:event_yield_pct][:median] - 1.5, 4.5
      end
    end
  end

  def test_pipes_show_wasteful_releases
    measured do
      result = estimate { IO.pipe { |reader, writer| reader.getc if writer.write("x") } }
      assert_operator result[:wasteful_pct][:median], :>, 5
      assert_operator result[:wasteful_releases_per_call][:median], :>, 0.5
      assert_operator result[:knee_threads][:median], :<, 2, "nobody gains from these"
    end
  end

  def test_another_threads_answer_is_waited_for
    questions, answers = Array.new(2) { Thread::Queue.new }
    server = Thread.new { answers << sleep(0.001) while questions.pop }
    measured do
      result = estimate(concurrency: [1]) do
        questions << true
        answers.pop
      end
      assert_operator result[:io_pct][:median], :>, 60
    end
  ensure
    questions.close
    server.join
  end

  # Who computes beside makes the work wait for the GVL; that is no yield.
  def test_waiting_for_the_gvl_is_not_yielding
    Headway.start(policy: :fair, quantum_ms: 10)
    neighbour = Thread.new { loop { compute(0.01) } }
    measured do
      sample = Headway::Native.metered { 5.times { compute(0.03) } }
      running_s, ready_s, *away_s = sample.first(5)
      assert_operator ready_s, :>, 0.02
      assert_operator away_s.sum, :<, running_s / 4
    end
  ensure
    neighbour&.kill&.join
  end

  def test_the_wall_clock_tells_work_that_yields_from_work_that_does_not
    measured do
      sleeping = estimate { sleep(0.002) }
      adding = estimate { 2 + 2 }
      assert_operator sleeping[:wall_yield_pct][:median], :>, adding[:wall_yield_pct][:median]
      assert_operator sleeping[:wall][:concurrent_s][:median], :<, 0.8
    end
  end

  def test_the_parts_make_up_the_whole
    measured do
      result = estimate { File.read(__FILE__) && sleep(0.0005) }
      parts = %i[io_pct gvl_free_cpu_pct wasteful_pct].sum { result[_1][:median] }
      assert_in_delta result[:event_yield_pct][:median], parts, 3
      figures = result.values.grep(Hash).select { _1.key?(:median) }
      assert_operator figures.size, :>=, 10
      figures.each { |figure| assert_operator figure[:min], :<=, figure[:max] }
    end
  end

  def test_predictions_and_measurements_by_concurrency
    measured do
      result = estimate(concurrency: [1, 3], measure: true) { sleep(0.002) }
      assert_equal %w[1 3], result[:predicted].keys
      assert_equal %w[1 3], result[:measured].keys
      assert_in_delta 3, result[:predicted]["3"][:speedup][:median], 0.2
      result[:measured].each do |count, figures|
        predicted = result[:predicted][count][:per_s][:median]
        assert_in_delta 100 * ((predicted / figures[:per_s][:median]) - 1), figures[:per_s_error_pct], 1e-9
        assert_operator figures[:per_s][:max] * figures[:latency_ms][:min], :>, count.to_i * 999
      end
    end
  end

  def test_what_the_block_raises_is_raised
    assert_raises(IndexError) { estimate { raise IndexError } }
    assert_raises(NotImplementedError) { estimate { raise NotImplementedError } }
    calls = 0
    assert_raises(IndexError) { estimate { (calls += 1) > 20 ? raise(IndexError) : sleep(0.01) } }
  end

  def test_what_cannot_be_measured
    assert_match(/the work forks/, assert_raises(Headway::Estimate::Error) { estimate { fork } }.message)
    assert_match(/ends its thread/, assert_raises(Headway::Estimate::Error) { estimate { Thread.exit } }.message)
    nested = assert_raises(Headway::Estimate::Error) { estimate { estimate { nil } } }
    assert_match(/another yield fraction is being measured/, nested.message)
    assert_match(/no block given/, assert_raises(ArgumentError) { Headway.yield_fraction }.message)
    assert_match(/concurrency is \[0\]: give whole numbers/, assert_raises(ArgumentError) { estimate(concurrency: [0]) { nil } }.message)
    { 0 => "0", "1" => '"1"' }.each do |run_s, said|
      assert_equal "run_s is #{said}: give seconds above 0", assert_raises(ArgumentError) { Headway.yield_fraction(run_s: run_s) { nil } }.message
    end
  end

  def test_every_key_is_documented
    document = File.read(File.expand_path("../../docs/yield-json.md", __dir__))
    result = estimate(concurrency: [2], measure: true, processes: [1]) { sleep(0.001) }
    keys = [result, result[:wall], result[:measured]["2"], result[:processes].first].flat_map(&:keys)
    keys.each { |key| assert_includes document, "`#{key}`" }
  end

  def test_the_result_is_a_number_too
    measured do
      result = Headway.yield_fraction(concurrency: [2], run_s: 0.02) { sleep(0.001) }
      assert_operator result.fraction, :>, 0.95
      assert_operator Float(result.to_f), :<=, 1
      assert_match(/yields \d/, result.inspect)
    end
  end

  private

  def estimate(concurrency: [8], **options, &block)
    Headway::Estimate.call(block, concurrency:, run_s: 0.02, **options).to_h
  end

  def compute(seconds)
    until_s = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
    nil until Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) >= until_s
  end
end
