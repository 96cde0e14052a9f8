# frozen_string_literal: true

require "test_helper"
require "stringio"
require "tmpdir"
require "headway/bench/overview/command"
require "headway/bench/demo"

# The table of all figures and the demonstration, on the smallest scale.
class BenchOverviewTest < Minitest::Test
  include Headway::Bench

  TINY = Overview::Scale.new(runs: 1, iterations: 1, seconds: 0.05, blocks: 1, window_s: 0.02, slice_s: 0.2)

  def time_limit = 240

  def setup
    skip "Headway does nothing here" if Interpreter.current.headway_trouble
  end

  def test_throughput_idle_cost_and_slices
    overview = overview(%w[throughput idle slices])
    rows = overview.to_h["rows"]
    assert_equal 6 + 2 + 5, rows.size
    assert_equal [RUBY_VERSION], rows.map { _1["ruby"] }.uniq
    assert_equal %w[signal poll], rows.first["cells"].keys
    table, machine = overview.to_markdown.split("\n\n")
    assert_equal rows.size + 2, table.lines.size
    assert_match(/\AOn this machine a signal to another core takes \d+ µs/, machine)
  end

  def test_waste
    rows = overview(%w[waste]).to_h["rows"]
    assert_equal %w[stock signal poll], rows.first["cells"].keys
    assert_equal %w[median min max n unit], rows.first["cells"]["stock"].keys
    assert_equal %w[ratio low high n unit], rows.last["cells"]["signal"].keys
  end

  def test_bad_usage_of_the_command
    { %w[--nope] => /--nope/, %w[more] => /"more"/, %w[--only nope] => /unknown section "nope"/ }.each do |argv, pattern|
      _, err = capture_io { assert_equal 2, Overview::Command.call(argv) }
      assert_match pattern, err
      assert_equal 1, err.lines.size
    end
  end

  def test_demonstration
    Dir.mktmpdir do |folder|
      path = File.join(folder, "demo.html")
      fairness = { "seconds" => 0.1, "server_ms" => 1, "cpu_threads" => [0, 1] }
      out, = capture_io { Demo.new(path, quantum: { "iterations" => 2 }, fairness:, progress: StringIO.new).call }
      assert_match(/^headway: .* I\/O waste/, out)
      assert_match(/^Requests a second/, out)
      assert_match(/The picture is in #{path}/, out)
      assert_equal 2, File.read(path).scan("<h1>").size
    end
  end

  private

  def overview(sections) = Overview.new([Interpreter.current], scale: TINY, only: sections, progress: StringIO.new).call
end
