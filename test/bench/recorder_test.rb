# frozen_string_literal: true

require "test_helper"
require "harness/timing"
require "tmpdir"

# `bin/bench-recorder`, with those of its arms that need no gem of others.
class BenchRecorderTest < Minitest::Test
  include Harness::Timing

  RUN = <<~RUBY
    require "./bench/recorders/arms"
    arms = Arms::ALL.slice("nothing", "headway stream")
    Arms.send(:remove_const, :ALL)
    Arms::ALL = arms
    load "bench/recorders/run.rb"
  RUBY
  ROOT = File.expand_path("../..", __dir__)

  def test_a_table
    result = run_it("--runs", "1", "--seconds", "1", "--only", "handovers")
    assert_predicate result, :success?, result.to_s
    assert_equal "handovers, run 1 of 1: 2 turns of each\n", result.err
    assert_match(/, 2 turns of 0\.5 s;/, result.out)
    assert_match(/^headway stream    headway \S+ +\d\.\d{3} /, result.out)
  end

  def test_bad_usage
    { %w[nonsense] => /nonsense is not expected here/, %w[--runs 0] => /--runs 0: give 1 or more/, %w[--nope] => /invalid option: --nope/,
      %w[--only nope] => /--only nope: give some of handovers,/ }.each do |arguments, words|
      result = run_it(*arguments)
      assert_equal [2, ""], [result.status.exitstatus, result.out], result.to_s
      assert_match(/\Abench-recorder: .*#{words}.*\n\z/, result.err)
    end
  end

  # To all that the terminal would tell.
  def test_an_interrupt_leaves_nothing_and_says_nothing
    Dir.mktmpdir do |directory|
      IO.pipe do |said, err|
        env = Harness::RubyProcess::ENVIRONMENT.merge("TMPDIR" => directory, "HEADWAY_CONTROL" => "0")
        command = [RbConfig.ruby, "-Ilib", "-e", RUN, "--", "--only", "saturated", "--seconds", "60"]
        pid = Process.spawn(env, *command, chdir: ROOT, out: err, err:, pgroup: true)
        err.close
        assert_match(/saturated, run 1/, said.gets)
        await("what two programs keep") { Dir.children(directory).size == 2 }
        Process.kill(:INT, -pid)
        assert_equal 130, Process.wait2(pid).last.exitstatus
        assert_empty said.read, "until the last of them has ended"
        assert_empty Dir.children(directory)
      end
    end
  end

  private

  def run_it(*arguments) = Harness::RubyProcess.run("-e", RUN, "--", *arguments, pass: { chdir: ROOT })
end
