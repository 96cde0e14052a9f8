# frozen_string_literal: true

require "harness/last_word"
require "harness/trap_test"

# Trap: the thread to be signalled has ended meanwhile.
class ThreadChurnTest < Harness::TrapTest
  test_under Harness::Modes::ALL.keys, "threads that compute and end at once beside ones that wake up" do
    beside_io_threads(6, pause: 0.0002) do
      deadline = now + scale(1)
      while now < deadline
        Array.new(10) { |index| Thread.new { compute(index * 0.0007) } }.each(&:join)
      end
    end
    assert_record_for_each_thread
  end

  test_under Harness::Modes::ALL.keys, "threads that are killed at any moment" do
    random = Random.new(1)
    beside_io_threads(4, pause: 0.0003) do
      scale(100).times do
        threads = Array.new(4) { Thread.new { random.rand(2).zero? ? compute(0.01) : sleep(0.01) } }
        sleep random.rand * 0.004
        threads.each(&:kill).each { |thread| assert thread.join(patience(10)), "a kill was lost" }
      end
    end
    assert_record_for_each_thread
  end

  def test_who_is_ending_while_headway_is_stopped_and_started_leaves_the_records_of_others_alone
    sleepers = []
    Headway.start
    await("one that is in no list meanwhile") do
      sleepers.pop&.kill&.join
      restarted_beside_unlisted?(sleepers)
    end
    await("its exit") { Headway.stats[:process][:threads] == Thread.list.size }
    sleepers << start_sleeper
    numbers = Headway.stats[:threads].filter_map { |row| row[:number] if row[:alive] }
    assert_equal Thread.list.size, numbers.uniq.size, numbers
  ensure
    sleepers.each { |thread| thread.kill.join }
  end

  # The VM announces a thread before it tries to create it, and says nothing when that fails.
  def test_threads_that_cannot_be_created
    skip "Ruby 3.3 itself hangs after a thread it could not create" if RUBY_VERSION < "3.4"

    run = Harness::RubyProcess.eval(<<~RUBY, env: { "RUBY_THREAD_MACHINE_STACK_SIZE" => (1 << 45).to_s })
      require "headway"
      Headway.start
      failures = 50.times.count { Thread.new { nil } && false rescue true }
      print [failures, Headway.stats[:process][:threads], Headway.stats[:threads].size].inspect
      950.times { Thread.new { nil } rescue nil }
      print Headway::Stats.process[:threads] < 100
    RUBY
    assert run.success?, run
    assert_equal "[50, 1, 1]true", run.out
  end

  private

  # From Ruby 4.0 on who passes the GVL is back in the list when it gets it again: whether that is before the start is chance.
  def restarted_beside_unlisted?(sleepers)
    entered = goes_on = unlisted = false
    ending = Harness::LastWord.of_a_thread { entered = true; Thread.pass until goes_on } # to sleep would bring it back on any Ruby
    assert_raises(Harness::LastWord) do
      await("its end") { entered }
      Headway.stop
      unlisted = !Thread.list.include?(ending)
      Headway.start
      sleepers << start_sleeper # has the record that was the ending thread's
      goes_on = true
      sleep # until it is raised here
    end
    unlisted
  end

  def start_sleeper
    Thread.new { sleep }.tap { |thread| await("its sleep") { thread.stop? } }
  end

  def assert_record_for_each_thread
    await("the last one's exit") { Headway.stats[:process][:threads] == Thread.list.size } # a little after it can be joined
    assert_equal Thread.list.size, Headway.stats[:threads].count { |row| row[:alive] }
  end
end
