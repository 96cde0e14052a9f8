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

  # The VM follows a list through the stacks of those that wait while it wakes them by a scheduler that lets others run.
  def test_a_pool_is_closed_while_fibers_wait_for_a_place_and_give_up
    random = Random.new(SEED)
    outcomes = SelectScheduler.run do |scheduler|
      scheduler.define_singleton_method(:unblock) { |*arguments| super(*arguments).tap { Thread.pass } }
      Array.new(60) { close_while_fibers_wait(random) }.flatten
    end
    assert_equal 60 * 40, outcomes.size
    assert_empty outcomes - [:ran, Headway::OffloadPool::ClosedError, Headway::OffloadPool::DeadlineError, OffloadStorm::Raised]
  end

  private

  def close_while_fibers_wait(random)
    pool = Headway::OffloadPool.new(workers: 1, queue: 1, full: :wait)
    outcomes = []
    fibers = Array.new(40) do
      deadline = 0.001 + random.rand(0.01)
      Fiber.schedule do
        outcomes << pool.run(deadline: deadline) { sleep(0.004) && :ran }
      rescue StandardError => error
        outcomes << error.class
      end
    end
    closer = Thread.new { sleep(random.rand(0.006)) && pool.close }
    while (fiber = fibers.select(&:alive?).sample(random: random))
      fiber.raise(OffloadStorm::Raised)
      sleep 0.0003
    end
    closer.join
    outcomes
  end

  def assert_survives(kind, outcomes)
    result = OffloadStorm.run(kind, count: COUNT, seed: SEED, outcomes: outcomes)
    assert_operator result[:attacks], :>=, COUNT
    outcomes.each { |outcome| assert_operator result[:outcomes][outcome], :>, 10, result.inspect }
    stats = result[:stats]
    assert_operator stats.values_at(*OffloadStorm::FATES).min, :>, 0, stats.inspect
  end
end
