# frozen_string_literal: true

require "test_helper"
require "headway"
require "stress/campaign"
require "stress/options"
require "stringio"

# A short part of bin/stress: every policy and preemption, every ending, then Ruby alone. A failure names the seed that brings
# it back.
class StressTest < Minitest::Test
  PROCESSES = 12 # every ending, and each of the six settings about twice; 72 in a row have all pairs
  SECONDS = ENV.fetch("HEADWAY_TEST_STRESS_SECONDS", nil)
  STALL = 60 # seconds

  def time_limit = SECONDS.to_f * 2 + 600

  def test_nothing_is_lost_under_load
    skip Headway.unsupported_reason unless Headway.supported?
    assert_campaign(*(SECONDS ? ["--seconds", SECONDS] : ["--processes", PROCESSES.to_s]))
  end

  def test_the_load_itself_is_sound_without_headway
    assert_campaign("--processes", "4", "--policy", "none")
  end

  private

  def assert_campaign(*arguments)
    out = StringIO.new
    options = Stress::Options.parse(["--quiet", "--seed", Random.rand(1_000_000).to_s, "--process-seconds", "1",
                                     "--stall", (STALL * Harness::TimeLimit.seconds_scale).to_s, *arguments])
    assert Stress::Campaign.new(options, out: out).run, out.string
  end
end
