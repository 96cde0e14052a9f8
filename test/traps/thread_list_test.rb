# frozen_string_literal: true

require "harness/trap_test"
require "tmpdir"

# Trap: a program's Thread.list may leave threads out, or tell of what is none, as where a test stubs it.
class ThreadListTest < Harness::TrapTest
  # Thread.list, while it is set.
  module Stub
    class << self
      attr_accessor :list
    end

    def list = Stub.list || super
  end

  def with_list(list)
    Thread.singleton_class.prepend(Stub)
    Stub.list = list
    yield
  ensure
    Stub.list = nil
  end

  def beside_a_sleeper
    sleeper = Thread.new { sleep }
    sleeper.name = "sleeper"
    await("its sleep") { sleeper.stop? }
    yield sleeper
  ensure
    sleeper.kill.join
  end

  def test_a_start_finds_the_threads_there_are
    beside_a_sleeper do |sleeper|
      [[], [:none]].each do |list|
        with_list(list) do
          with_headway do
            assert_includes Headway.stats[:threads].map { |thread| thread[:name] }, "sleeper"
            assert_equal "sleeper", Headway.thread(sleeper).stats[:name]
            Headway.thread(sleeper).quantum_ms = 7
            refute_predicate Headway.thread(sleeper), :batch?
          end
        end
      end
    end
  end

  def test_a_recording_names_the_threads_there_are
    Dir.mktmpdir do |directory|
      file = File.join(directory, "trace.headway")
      beside_a_sleeper do
        with_headway(record: file) { with_list([:none]) { Headway::Recorder.stop } }
      end
      assert_includes Headway::Trace.open(file).to_h[:threads].map { |thread| thread[:name] }, "sleeper"
    end
  end
end
