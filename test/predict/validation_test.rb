# frozen_string_literal: true

require_relative "recorded"
require "headway/predict/validation/command"

# `bin/validate`.
class ValidationTest < PredictCase
  Validation = Headway::Predict::Validation
  GRID = { threads: [1], processes: [1], quantum_ms: [100], policy: [:stock] }.freeze
  FIGURES = { "requests_per_s" => 123.0, "mean_ms" => 1.0, "p50_ms" => 1.0, "p99_ms" => 1.0 }.freeze

  def test_a_setting_is_predicted_written_down_and_measured
    validation = validated(1)
    cell, = validation.cells

    assert_equal :policy, cell.sort
    assert_operator cell.measured["requests_per_s"], :>, 0
    assert_kind_of Float, cell.error("requests_per_s")
    assert_operator cell.amdahl, :>, 0
    written = File.read(File.join(@validated, "predictions.json"))
    assert_equal Digest::SHA256.hexdigest(written), validation.digest
    assert_in_delta cell.predicted["requests_per_s"], JSON.parse(written).first.dig("predicted", "requests_per_s"), 1e-6
    assert_equal 1, validation.base_rates.size
    assert_match(/^\| 2 × 5 \| fair \| 100 \|/, Validation::Report.new(validation, "bin/validate").to_markdown)
  end

  # It starts for longer than it is measured.
  def test_a_process_that_is_slow_to_start_is_measured_for_as_long
    slow = File.join(@directory, "slow.rb")
    File.write(slow, "sleep 4")
    before = ENV["RUBYOPT"]
    validation = Validation.new(@directory, seconds: 0.5)
    ENV["RUBYOPT"] = [*before, "-r#{slow}"].join(" ")
    latencies = validation.send(:run, Validation::BASE, 1)
    assert_operator latencies.values.sum(&:size), :>, 0
  ensure
    ENV["RUBYOPT"] = before
  end

  def test_one_that_was_broken_off_goes_on
    File.rename(orders, File.join(@directory, "base.headway"))
    predictions, measured = %w[predictions.json measured.jsonl].map { |name| File.join(@directory, name) }
    File.write(predictions, JSON.generate([{ predicted: FIGURES, refused: nil }]))
    assert_match(/minutes are over, 2 of 2 runs are left/, assert_raises(Headway::Bench::Error) { again }.message)

    File.write(measured, "\n#{JSON.generate(["0 1 x 1 stock, quantum 100 ms", FIGURES])}\n[\"0 base 0\", {\"requ")
    assert_match(/, 1 of 2 runs are left/, assert_raises(Headway::Bench::Error) { again }.message)
    Validation::Kept.new(@directory, JSON.parse(File.read(File.join(@directory, "plan.json")))).fetch("0 base 0") { FIGURES }

    validation = again
    assert_equal [FIGURES, 0.0], [validation.cells.first.measured, validation.cells.first.error("p99_ms")]
    assert_equal [Digest::SHA256.file(predictions).hexdigest, [123.0]], [validation.digest, validation.base_rates]
    assert_match(/has a validation of other settings/, assert_raises(Headway::SettingError) { again(seconds: 2) }.message)
  end

  def test_every_error_is_reported_with_its_sign_and_those_beyond_the_limit_are_bold
    report = Validation::Report.new(made_up, "bin/validate --quick")
    text = report.to_markdown

    assert_includes text, "| 1 × 5 | stock | 100 | 100.0 (99.0–101.0) | 10.0, 8.0, 50.0 | +1.0 | +5.0 | +4.0 | +20.0 | -50.0 |"
    assert_includes text, "| 1 × 8 | stock | 100 | 100.0 (99.0–101.0) | 10.0, 8.0, 50.0 | **-6.0** | +5.0 | +4.0 | **+40.0** | -50.0 |"
    assert_includes text, "refused: too far"
    assert_includes text, "| other threads, processes or quantum | requests/s | 5 % | 0 of 1 | -6.0 % | 6.0 % |"
    assert_includes text, "Regret, how far the setting predicted to do most stays behind the one that did most: 0.0 %"
    assert_equal 4, report.to_svg.scan("<title>").size
  end

  # Before hours of measuring, not after them.
  def test_where_it_cannot_write
    { ["--out", "/nonexistent/x.md"] => %r{cannot write /nonexistent/x\.md: No such file or directory$},
      ["--out", File.join(@directory, "x.md"), "--dir", __FILE__] => /_test\.rb can't be used: File exists$/ }.each do |arguments, words|
      _, err = capture_io { assert_equal 2, Validation::Command.call(arguments) }
      assert_match words, err
      assert_equal 1, err.lines.size
    end
    refute_path_exists File.join(@directory, "x.md")
  end

  def test_bad_usage
    { ["--runs", "0"] => /--runs is 0/, ["--frob"] => /invalid option: --frob/, ["more"] => /more is not expected/,
      ["--minutes", "5"] => /--minutes needs --dir/ }.each do |arguments, words|
      status = nil
      _, err = capture_io { status = Validation::Command.call(arguments) }
      assert_equal 2, status
      assert_match words, err
      assert_equal 1, err.lines.size
    end
  end

  private

  # A machine that stops for a while comes to too few requests: once more, for longer.
  def validated(seconds)
    @validated = Dir.mktmpdir("of-#{seconds}-s", @directory)
    grid = { threads: [5], processes: [2], quantum_ms: [100], policy: [:fair] }
    Validation.new(@validated, grid:, seconds:, runs: 1).call
  rescue Headway::Bench::Error
    raise if seconds >= 9

    validated(3 * seconds)
  end

  def again(seconds: 1) = Validation.new(@directory, grid: GRID, seconds:, runs: 1, minutes: 1e-9).call

  # Stands for a validation that is done.
  MadeUp = Struct.new(:cells, :digest, :base_rates, :seconds, :runs, :regret)

  def made_up
    cells = [cell(5, 101, 10.5, 8.32, 60), cell(8, 94, 10.5, 8.32, 70), cell(99, nil)]
    MadeUp.new(cells, "0" * 64, [99.0, 101.0], 3, 1, 0.0)
  end

  def cell(threads, *predicted)
    measured = { "requests_per_s" => 100.0, "mean_ms" => 10.0, "p50_ms" => 8.0, "p99_ms" => 50.0 }
    Validation::Cell.new(setting: Validation::BASE.with(threads:), predicted: predicted.compact.empty? ? nil : measured.keys.zip(predicted).to_h,
                         measured:, spread: [99.0, 101.0], amdahl: 50.0, refusal: predicted.compact.empty? ? "too far" : nil)
  end
end
