# frozen_string_literal: true

require "test_helper"
require "json"
require "headway/bench"

# `headway bench` as a process of its own.
module BenchProcess
  EXECUTABLE = File.expand_path("../../exe/headway", __dir__)

  def bench(*arguments, env: {})
    Harness::RubyProcess.run(EXECUTABLE, "bench", *arguments, env: { "HEADWAY" => nil, **env }, limit: time_limit - 5)
  end

  # @return [Hash] the document that a benchmark printed
  def bench_json(*arguments, env: {})
    result = bench(*arguments, "--json", env:)
    assert_predicate result, :success?, result.to_s
    assert_equal 1, result.out.lines.size, "one line of JSON on stdout"
    JSON.parse(result.out)
  end

  # Bad usage: one line, exit status 2, nothing on stdout.
  def assert_refused(pattern, *arguments, env: {})
    result = bench(*arguments, env:)
    assert_equal 2, result.status.exitstatus, result.to_s
    assert_equal 1, result.err.lines.size, result.err
    assert_match pattern, result.err
    assert_empty result.out
  end

  def headway? = Headway::Bench::Interpreter.current.headway_trouble.nil?

  # Every arm that this Ruby can run.
  def able_arms
    arms = Headway::Bench::Arm.choose(Headway::Bench::Arm::DEFAULTS, Headway::Bench::Interpreter.current)
    arms.reject(&:trouble).map(&:name)
  end
end
