# frozen_string_literal: true

require "harness/isolated_test"
require "offload/storm"

# The storms, briefly: `bin/stress --offload` runs them for as long as one likes.
class OffloadStormTest < Harness::IsolatedTest
  SEED = Integer(ENV.fetch("HEADWAY_STORM_SEED", "5"))
  COUNT = 700 # of each kind

  def test_fibers_of_a_scheduler_without_timeouts = assert_survives(:select, %i[raise kill ended])

  def test_fibers_of_our_own_scheduler = assert_survives(:headway, %i[raise kill timeout ended])

  def test_threads = assert_survives(:threads, %i[raise kill timeout ended])

  private

  def assert_survives(kind, outcomes)
    result = OffloadStorm.run(kind, count: COUNT, seed: SEED, outcomes: outcomes)
    assert_operator result[:attacks], :>=, COUNT
    outcomes.each { |outcome| assert_operator result[:outcomes][outcome], :>, 10, result.inspect }
    stats = result[:stats]
    assert_operator stats.values_at(*OffloadStorm::FATES).min, :>, 0, stats.inspect
  end
end
