# frozen_string_literal: true

require "test_helper"
require "headway"
require "stress/campaign"
require "stress/options"
require "stringio"

# A short part of bin/stress: every policy and preemption in turn, then Ruby alone. A failure names the seed that
# brings it back.
class StressTest < Minitest::Test
  SECONDS = Float(ENV.fetch("HEADWAY_TEST_STRESS_SECONDS", "60"))

  def time_limit = SECONDS * 2 + 300

  def test_nothing_is_lost_under_load
    skip Headway.unsupported_reason unless Headway.supported?
    assert_campaign("--seconds", SECONDS.to_s, "--process-seconds", "2")
  end

  def test_the_load_itself_is_sound_without_headway
    assert_campaign("--seconds", (SECONDS / 6).to_s, "--process-seconds", "1", "--policy", "none")
  end

  private

  def assert_campaign(*arguments)
    out = StringIO.new
    options = Stress::Options.parse(["--quiet", "--seed", Random.rand(1_000_000).to_s, *arguments])
    assert Stress::Campaign.new(options, out: out).run, out.string
  end
end
