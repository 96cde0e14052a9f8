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

  def test_who_was_given_up_is_passed_over
    line = Headway::OffloadPool::Line.new
    jobs = [Job.new(:queued, 0), Job.new(:withdrawn, 0), Job.new(:ran, 0)].each { |job| line.join(job) }
    assert_equal jobs.first(1), line.queued
    assert_same jobs.first, line.next
    assert_nil line.next
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

  # While one worker is at light work nobody is woken for more of it.
  def test_light_work_waits_for_the_worker_that_is_at_such_work
    pool = busy_with_light_work
    others = light(pool, 5)
    assert_equal [1, 5], pool.stats.values_at(:workers, :queued)
    assert_equal :heavy, pool.call(-> { :heavy }) # has another one come
    assert_all_seven_run(pool, others)
  ensure
    pool.close
  end

  # Whoever comes for one that may not line up may have to do first what has waited for long, and still does it.
  def test_heavy_work_is_not_left_behind_for_light_work_that_has_waited
    pool = busy_with_light_work
    others = light(pool, 5)
    sleep 0.03
    assert_equal :heavy, pool.call(-> { :heavy })
    assert_operator others.count(&:alive?), :<, 5
    assert_predicate @first, :alive?
    assert_all_seven_run(pool, others)
  ensure
    pool.close
  end

  def test_light_work_is_not_left_behind_by_a_worker_that_is_killed
    pool = busy_with_light_work
    others = light(pool, 5)
    worker = pool.instance_variable_get(:@threads).keys.first
    worker.kill
    assert_equal [0, 1, 2, 3, 4], others.map(&:value)
    worker.join
    assert_raises(Headway::OffloadPool::WorkerError) { @first.value }
    assert_equal 42, light(pool, 1) { 42 }.first.value
  ensure
    pool.close
  end

  def test_light_work_in_line_ends_with_its_deadline_and_holds_nobody_up
    pool = busy_with_light_work
    late = light(pool, 1, 0.01) { flunk }.first
    assert_raises(Headway::OffloadPool::DeadlineError) { late.value }
    others = light(pool, 2)
    @gate << true
    assert_equal [0, 1], others.map(&:value)
    assert_equal [1, 0], pool.stats.values_at(:withdrawn, :queued)
  ensure
    pool.close
  end

  def test_light_work_in_line_is_done_before_the_pool_ends
    pool = busy_with_light_work
    others = light(pool, 3)
    closing = Thread.new { pool.close }
    sleep 0.002 until pool.closed?
    @gate << true
    closing.join
    assert_equal [0, 1, 2], others.map(&:value)
  end

  def test_nobody_lines_up_for_light_work_that_lasts
    pool = busy_with_light_work
    pool.instance_variable_set(:@light_since, 0.0)
    assert_equal 42, light(pool, 1) { 42 }.first.value
    assert_predicate @first, :alive?
    @gate << true
  ensure
    pool.close
  end

  def test_who_is_preempted_on_the_way_into_the_line_is_not_left_behind
    pool = busy_with_light_work
    pool.run { nil } # on another worker, which idles then
    waiting, = light(pool, 1)
    held = Thread::Queue.new
    pool.instance_variable_get(:@line).define_singleton_method(:join) do |job|
      held.pop if Thread.current[:held]
      super(job)
    end
    slow = Thread.new { (Thread.current[:held] = true) && pool.run { :slow } }
    sleep 0.002 until pool.stats[:ran] >= 2
    @gate << true
    [@first, waiting].each(&:join)
    held << true
    assert_equal :slow, slow.value
  ensure
    pool.close
  end

  def test_all_workers_are_hired_while_others_wait_for_a_place
    pool = Headway::OffloadPool.new(workers: 3, queue: 1, full: :wait)
    gate = Thread::Queue.new
    threads = Array.new(12) { Thread.new { pool.run { gate.pop } } }
    sleep 0.002 until gate.num_waiting == 3
    12.times { gate << true }
    threads.each(&:join)
    assert_equal 3, pool.stats[:workers]
  ensure
    pool.close
  end

  private

  # One worker is at light work until @gate opens, for which one can line up all the time.
  def busy_with_light_work
    pool = Headway::OffloadPool.new(workers: 2)
    begun = Thread::Queue.new
    @gate = Thread::Queue.new
    @first = light(pool, 1) { (begun << true) && @gate.pop }.first
    begun.pop
    pool.instance_variable_set(:@light_since, Float::INFINITY)
    pool
  end

  # The five others, the heavy one before, and the first, once it may.
  def assert_all_seven_run(pool, others)
    @gate << true
    assert_equal [true, 0, 1, 2, 3, 4], [@first, *others].map(&:value)
    assert_equal [7, 0], pool.stats.values_at(:ran, :queued)
  end

  # @return [Array<Thread>] each of which waits for light work that returns its number, or what the block does
  def light(pool, count, deadline = nil)
    in_line = pool.stats[:queued]
    threads = Array.new(count) do |number|
      Thread.new { pool.hand_over(-> { block_given? ? yield : number }, deadline, 1, true) { flunk } }
    end
    threads.each { |thread| thread.report_on_exception = false }
    Thread.pass until !busy?(pool) || pool.stats[:queued] == in_line + count || threads.any? { |thread| !thread.alive? }
    threads
  end

  def busy?(pool) = pool.instance_variable_get(:@light).positive?

  # @return [Array<Integer>] whose turn it is: the first to join is 1
  def order(*ages)
    line = Headway::OffloadPool::Line.new
    numbers = {}.compare_by_identity
    ages.each { |age| line.join(job = Job.new(:queued, age)) && numbers[job] = numbers.size + 1 }
    Array.new(ages.size) { numbers.fetch(line.next) }
  end
end
