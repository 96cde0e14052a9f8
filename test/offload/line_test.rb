# frozen_string_literal: true

require "test_helper"
require "headway"
require "offload/select_scheduler"

# Whose turn it is among the jobs that wait for a worker.
class OffloadLineTest < Minitest::Test
  Job = Struct.new(:state, :age) do
    def queued? = state == :queued
  end

  def test_the_newest_first_until_the_oldest_has_waited
    assert_equal [3, 2, 1], order(0.001, 0.001, 0.001)
    assert_equal [1, 3, 2], order(0.02, 0.001, 0.001)
    assert_equal [1, 2, 3], order(0.04, 0.03, 0.02)
  end

  def test_who_was_given_up_is_passed_over_and_told_of
    line = Headway::OffloadPool::Line.new
    jobs = [Job.new(:queued, 0), Job.new(:withdrawn, 0), Job.new(:ran, 0)].each { |job| line.join(job) }
    assert_equal jobs.first(1), line.queued
    given_up = 0
    assert_same jobs.first, line.next { given_up += 1 }
    assert_nil(line.next { flunk })
    assert_equal 1, given_up
  end

  # Else the first would wait for as long as others come.
  def test_nobody_waits_while_others_come_without_end
    pool = Headway::OffloadPool.new(workers: 1)
    done = false
    SelectScheduler.run do
      others = Array.new(3) { Fiber.schedule { pool.run { sleep 0.001 } until done } }
      Fiber.schedule { pool.run { done = true } }
      sleep 0.002 while others.any?(&:alive?)
    end
    assert done
  ensure
    pool.close
  end

  private

  # @return [Array<Integer>] whose turn it is: the first to join is 1
  def order(*ages)
    line = Headway::OffloadPool::Line.new
    numbers = {}.compare_by_identity
    ages.each { |age| line.join(job = Job.new(:queued, age)) && numbers[job] = numbers.size + 1 }
    Array.new(ages.size) { numbers.fetch(line.next) }
  end
end
