# frozen_string_literal: true

require_relative "bench_process"
require "etc"
require "harness/measured"

# Each benchmark, run briefly: is what it prints what is documented?
class BenchExperimentsTest < Minitest::Test
  include BenchProcess
  include Harness::Measured

  def time_limit = 180

  def test_quantum
    result = bench_json("quantum", "--iterations", "3", "--runs", "2")
    assert_document result, "quantum", runs: 2
    assert_equal 3, result["config"]["iterations"]
    result["arms"].each_value do |figures|
      assert_figures figures, %w[total_s waste_s io_waste_s cpu_s], runs: 2
      assert_operator figures["total_s"]["median"], :>=, figures["cpu_s"]["min"]
    end
    result["ratios"].each_value { assert_equal %w[total_s waste_s io_waste_s cpu_s], _1.keys }
  end

  def test_fairness
    measured do
      result = bench_json("fairness", "--seconds", "0.3", "--server-ms", "5", "--cpu-threads", "0,1", "--runs", "1")
      assert_document result, "fairness", runs: 1
      assert_equal [0, 1], result["config"]["cpu_threads"]
      assert_match(/observe/, result["config"]["wait_method"])
      result["arms"].each_value do |cells|
        assert_equal %w[0 1], cells.keys
        cells.each_value { |figures| assert_fairness figures }
        assert_equal 0, cells["0"]["cpu_iterations_per_s"]["median"]
        assert_operator cells["1"]["cpu_iterations_per_s"]["median"], :>, 0
      end
      result["ratios"].each_value { assert_equal 1, _1["0"]["requests_per_s_vs_0"] }
    end
  end

  def test_computing_in_processes_is_an_arm_where_threads_compete
    measured do
      fairness = bench_json("fairness", "--seconds", "0.3", "--server-ms", "5", "--cpu-threads", "0,2", "--runs", "1", "--arms", "processes")
      cells = fairness["arms"].fetch("processes")
      cells.each_value { |figures| assert_fairness figures }
      assert_operator cells["2"]["cpu_iterations_per_s"]["median"], :>, 0

      quantum = bench_json("quantum", "--iterations", "3", "--runs", "1", "--arms", "processes")
      assert_figures quantum["arms"].fetch("processes"), %w[total_s waste_s io_waste_s cpu_s], runs: 1
      assert_match(/no arm "processes"/, bench("cpu", "--arms", "processes").err)
    end
  end

  def test_cpu
    result = bench_json("cpu", "--runs", "1", env: { "THREADS" => "3", "N" => "200_000" })
    assert_document result, "cpu", runs: 1
    assert_equal({ "threads" => 3, "iterations" => 200_000 }, result["config"].except("runs"))
    result["arms"].each_value { |modes| assert_modes modes, %w[single threads] }
    # CPU-bound threads gain nothing: however busy the machine is, three of them use one core and not three.
    result["arms"].each_value { assert_operator _1["threads"]["cpu_pct"]["median"], :<, 160 }
  end

  def test_io
    measured do
      result = bench_json("io", "--runs", "1", env: { "REQ" => "8", "CONC" => "8", "URL" => nil })
      assert_document result, "io", runs: 1
      result["arms"].each_value { |modes| assert_modes modes, %w[sequential concurrent] }
      # I/O-bound threads gain much; 2 is far from 8.
      result["ratios"].each_value { assert_operator _1["speedup"], :>, 2 }
    end
  end

  def test_io_against_an_address_of_ones_own
    Headway::Bench::Server.run(delay_ms: 1) do |port|
      url = "http://127.0.0.1:#{port}/page?a=1"
      result = bench_json("io", "--runs", "1", "--arms", "stock", env: { "URL" => url, "REQ" => "4" })
      assert_equal url, result["config"]["url"]
    end
  end

  def test_yield
    measured do
      result = bench_json("yield", "--seconds", "0.05", "--runs", "1", "--arms", "stock")
      works = result["arms"]["stock"]
      assert_equal ["2+2", "25% sleep", "50% sleep", "75% sleep", "sleep(0.001)", "deflate"], works.keys
      works.each_value { assert_equal %w[yield_pct event_yield_pct concurrent_s ideal_s], _1.keys }
      next unless headway?

      works.each_value { assert_figures _1, %w[yield_pct event_yield_pct concurrent_s ideal_s], runs: 1 }
      by_events = works.transform_values { _1["event_yield_pct"]["median"] }
      assert_operator by_events["2+2"], :<, 5
      assert_operator by_events["sleep(0.001)"], :>, 95
      assert_equal by_events.values.first(5).sort, by_events.values.first(5)
    end
  end

  def test_processes
    result = bench_json("processes", "--iterations", "20000", "--processes", "2", "--threads", "1,3", "--runs", "1")
    assert_document result, "processes", runs: 1
    result["arms"].each_value do |combinations|
      assert_equal %w[1×1 2×1 2×3], combinations.keys
      combinations.each_value { assert_figures _1, %w[wall_s cpu_pct speedup], runs: 1 }
      assert_equal 1, combinations["1×1"]["speedup"]["median"]
    end
  end

  def test_another_ruby_is_an_arm
    result = bench_json("quantum", "--iterations", "1", "--runs", "1", "--arms", "stock", "--ruby", RbConfig.ruby)
    assert_equal ["stock", "ruby-#{RUBY_VERSION}"], result["arms"].keys
  end

  def test_table_and_picture
    Dir.mktmpdir do |folder|
      picture = File.join(folder, "cpu.html")
      result = bench("cpu", "--runs", "1", "--arms", "stock,priority-3", "--plot", picture, env: { "N" => "10000" })
      assert_predicate result, :success?, result.to_s
      assert_match(/^single +stock/, result.out)
      assert_match(%r{^cpu 2/2: priority-3, run 1$}, result.err)
      assert_match(/<svg/, File.read(picture))
    end
  end

  private

  def assert_document(result, name, runs:)
    assert_equal %w[headway schema bench ruby cpus config arms ratios], result.keys
    assert_equal [Headway::VERSION, 1, name, RUBY_VERSION, Etc.nprocessors], result.values.first(5)
    assert_equal runs, result["config"]["runs"]
    assert_equal able_arms, result["arms"].keys
  end

  def assert_figures(figures, keys, runs:)
    assert_equal keys, figures.keys
    figures.each_value do |value|
      assert_equal %w[median min max n], value.keys
      assert_equal runs, value["n"]
      assert_operator value["min"], :<=, value["median"]
      assert_operator value["median"], :<=, value["max"]
    end
  end

  def assert_fairness(figures)
    waits = %w[wait_p50_us wait_p99_us wait_max_us]
    assert_equal ["requests_per_s", *waits, "cpu_iterations_per_s"], figures.keys
    assert_figures figures.except(*waits), %w[requests_per_s cpu_iterations_per_s], runs: 1
    return unless headway?

    p50, p99, max = figures.values_at(*waits).map { _1["median"] }
    assert_operator p50, :<=, p99
    # A histogram's bucket may lie up to a thousandth above what was put in.
    assert_operator p99, :<=, max * 1.01
  end

  def assert_modes(modes, names)
    assert_equal names, modes.keys
    modes.each_value { assert_figures _1, %w[wall_s cpu_s cpu_pct], runs: 1 }
  end
end
