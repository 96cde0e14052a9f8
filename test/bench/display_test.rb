# frozen_string_literal: true

require "test_helper"
require "stringio"
require "tmpdir"
require "headway/bench"
require "headway/bench/bars"

# Tables, bars and pictures of figures that are made up.
class BenchDisplayTest < Minitest::Test
  include Headway::Bench

  VOID = %w[meta !doctype rect circle path].freeze

  def setup
    @experiment = Fairness.new("cpu_threads" => [0, 16])
    samples = { "stock" => [16.0, 0.6, 1_600_000.0], "headway" => [16.0, 15.5, 25.0] }.transform_values do |alone, beside, wait|
      Array.new(3) { |run| { "0" => cell(alone + run, 3.0, nil), "16" => cell(beside, wait, 3e7) } }
    end
    @result = Result.build(@experiment, samples, Interpreter.current, 3)
  end

  def test_ratios
    assert_in_delta 15.5 / 0.6, @result["ratios"]["headway"]["16"]["requests_per_s"]
    assert_in_delta 0.6 / 17, @result["ratios"]["stock"]["16"]["requests_per_s_vs_0"]
    assert_nil @result["ratios"]["headway"]["0"]["cpu_iterations_per_s"]
  end

  def test_table
    text = Table.new(@result, @experiment).to_s
    assert_match(/^16 +headway +15.5 \(15.5–15.5\) +25.0 µs/, text)
    assert_match(/^16 +stock .*1.60 s/, text)
    assert_match(/^headway: with 16 computing threads the request rate is 0.912 of that with none/, text)
  end

  def test_bars_are_as_long_as_their_figures
    bars = Bars.new(Fairness::FIGURES.first, @result, @experiment).to_s.lines.drop(1)
    lengths = bars.to_h { |line| [line[/(\w+), CPU threads \d+/], line.count("█")] }
    assert_equal 40, lengths["stock, CPU threads 0"]
    assert_equal 1, lengths["stock, CPU threads 16"]
    assert_equal 36, lengths["headway, CPU threads 16"]
  end

  def test_picture_is_whole_and_needs_nothing_else
    html = Picture.new([[@result, @experiment], [@result, @experiment]]).to_html
    assert_balanced html
    refute_match(%r{https?://|<script|<link|<img|@import|url\(}, html)
    assert_equal 10, html.scan("<svg").size
    assert_match(/prefers-color-scheme: dark/, html)
    assert_match(/name="viewport"/, html)
  end

  def test_everything_drawn_is_within_the_picture
    html = Picture.new([[@result, @experiment]]).to_html
    html.scan(/ (?:x|cx)="([^"]+)"/).flatten.each { assert_includes 0.0..Chart::WIDTH.to_f, Float(_1) }
    html.scan(/width="([\d.-]+)" height/).flatten.each { assert_operator Float(_1), :>=, 0 }
    html.scan(/M([\d.-]+) /).flatten.each { assert_includes 0.0..Chart::WIDTH.to_f, Float(_1) }
  end

  def test_words_in_a_picture_are_escaped
    figures = @result["arms"].delete("headway")
    @result["arms"]["<b>&"] = figures
    @result["ratios"].delete("headway")
    html = Picture.new([[@result, @experiment]]).to_html
    refute_includes html, "<b>"
    assert_includes html, "&lt;b&gt;&amp;"
  end

  def test_a_figure_below_zero_and_one_that_is_always_zero_can_be_drawn
    rows = [-0.02, 0.0].map { |s| Table::Row.new(arm: "a#{s}", group: nil, figures: { "x" => Headway::Statistics.summary([s]) }) }
    figure = Figure.new(key: "x", title: "X")
    [rows, rows.drop(1)].each do |some|
      svg = Chart.new(figure, some).to_svg
      refute_match(/NaN|Infinity/, svg)
      assert_balanced svg
    end
  end

  def test_numbers_have_three_digits
    assert_equal %w[0 0.00123 1.23 12.3 123 1234 12.3k 1.23M -4.50], [0, 0.00123, 1.234, 12.34, 123.4, 1234, 12_340, 1.234e6, -4.5]
      .map { Figure.compact(_1) }
    assert_equal ["0.200 µs", "23.0 µs", "1.60 ms", "1.60 s"], [0.2, 23, 1600, 1.6e6].map { Figure.duration(_1) }
  end

  def test_a_file_that_cannot_be_written_is_found_out_and_none_is_left_behind
    Dir.mktmpdir do |folder|
      path = File.join(folder, "p.html")
      Picture.check(path)
      refute_path_exists path
      File.write(path, "kept")
      Picture.check(path)
      assert_equal "kept", File.read(path)
      assert_raises(UsageError) { Picture.check(folder) }
      assert_raises(UsageError) { Picture.check(File.join(folder, "none", "p.html")) }
    end
  end

  def test_a_full_disk_is_told_of_in_the_users_words
    skip "no /dev/full here" unless File.writable?("/dev/full")

    error = assert_raises(Error) { Picture.new([[@result, @experiment]]).write("/dev/full") }
    assert_equal "cannot write /dev/full: No space left on device", error.message
  end

  def test_arms_take_turns
    order = []
    experiment = Class.new(Experiment) do
      const_set(:DEFAULTS, {})
      define_singleton_method(:bench) { "turns" }
      define_method(:measure) { |arm, _| order << arm.name and { "x" => 1 } }
    end.new
    arms = Arm.choose(%w[stock priority-3 observe], Interpreter.current)
    Runner.new(experiment, arms, interpreter: Interpreter.current, runs: 2, progress: StringIO.new).call
    assert_equal %w[stock priority-3 observe observe priority-3 stock], order
  end

  def test_progress_says_what_the_host_took
    runner = Runner.new(nil, [], interpreter: nil, runs: 1, progress: progress = StringIO.new)
    [0.0194, 0.009, nil].each { |share| runner.send(:report_stolen, share) }
    assert_equal "  the machine's host took 2 % of its CPU time meanwhile: waits are longer for it\n", progress.string
  end

  private

  def cell(rate, wait, iterations)
    { "requests_per_s" => rate, "wait_p50_us" => wait, "wait_p99_us" => wait, "wait_max_us" => wait,
      "cpu_iterations_per_s" => iterations || 0.0 }
  end

  def assert_balanced(html)
    open = []
    html.scan(%r{<(/?)([!\w]+)[^>]*?(/?)>}) do |closing, name, self_closed|
      next if VOID.include?(name.downcase) || !self_closed.empty?

      closing.empty? ? open.push(name) : assert_equal(name, open.pop)
    end
    assert_empty open
  end
end
