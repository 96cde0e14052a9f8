# frozen_string_literal: true

require "harness/isolated_test"
require "harness/vm_events"
require "harness/workload"

# Specific keys, and what can be asked of a thread when it ends.
class ThreadStorageTest < Harness::IsolatedTest
  include Harness::Workload

  def test_there_are_eight_keys_and_a_ninth_is_past_the_end
    keys = VMFixture.take_specific_keys(12)
    assert_equal (0..7).to_a, keys.first(8)
    assert_includes [8, ThreadError], keys[8].is_a?(Integer) ? keys[8] : keys[8].class
    assert_kind_of ThreadError, keys.last
  end

  def test_the_first_key_cannot_be_taken_beside_a_second_ractor
    $VERBOSE = nil # Ractors are announced as experimental
    ractor = Ractor.new { Ractor.receive }
    assert_kind_of ThreadError, VMFixture.take_specific_keys(1).first
  ensure
    ractor.send(nil)
  end

  def test_threads_older_than_the_first_key_have_storage
    older = Thread.new { Thread.stop }
    Harness::VMEvents.record { sleep 0.001 }
    assert_operator VMFixture.number_of(older), :>, 0
  ensure
    older.kill.join
  end

  def test_storage_survives_a_fork
    Harness::VMEvents.record { sleep 0.001 }
    number = VMFixture.number_of(Thread.current)
    reader, writer = IO.pipe
    pid = fork do
      writer.write(VMFixture.number_of(Thread.current).to_s)
      exit!
    end
    writer.close
    assert_equal number.to_s, reader.read
  ensure
    Process.wait(pid)
    reader.close
  end

  def test_every_end_of_a_thread_is_announced_with_its_name_readable
    at_work = Thread::Queue.new
    names = VMFixture.names_of_ended_threads do
      named("returns") { nil }.join
      named("exits") { Thread.exit }.join
      named("killed asleep") { Thread.stop }.tap { |thread| await("sleep") { thread.stop? } }.kill.join
      named("killed at work") { at_work << true; loop { nil } }.tap { at_work.pop }.kill.join
      named("raises") { raise IOError }.tap { |thread| thread.report_on_exception = false }.join rescue nil
    end
    assert_equal ["returns", "exits", "killed asleep", "killed at work", "raises"], names
  end

  private

  # The body waits for the name, so that even a short life has one.
  def named(name)
    go = Thread::Queue.new
    thread = Thread.new do
      Thread.current.report_on_exception = false
      go.pop
      yield
    end
    thread.name = name
    go << true
    thread
  end
end
