# frozen_string_literal: true

require "harness/trap_test"
require "io/nonblock"

# Trap: the VM has eight specific keys for all tools together, and hands out a ninth past the end.
class TrapThreadStorageTest < Harness::TrapTest
  def test_without_a_key_it_declines_and_says_why
    [7, 8, 9].each do |taken|
      run = Harness::RubyProcess.eval(<<~RUBY)
        require "harness/vm_fixture"
        VMFixture.take_specific_keys(#{taken})
        require "headway"
        started = Headway.start
        4.times.map { Thread.new { 1_000_000.times { nil } } }.each(&:join)
        puts [started, Headway.started?, Headway.notices.size].inspect
      RUBY
      assert run.success?, run
      expected = taken < 8 ? "[true, true, 0]" : "[false, false, 1]"
      assert_equal expected, run.out.strip, "with #{taken} keys taken:\n#{run}"
      assert_equal taken < 8 ? 0 : 1, run.err.lines.grep(/headway/i).size, run
    end
  end

  def test_a_second_ractor_that_keeps_the_first_key_away_is_no_error
    run = Harness::RubyProcess.eval(<<~RUBY)
      $VERBOSE = nil
      ractor = Ractor.new { Ractor.receive }
      require "headway"
      Headway.start
      4.times.map { Thread.new { 1_000_000.times { nil } } }.each(&:join)
      ractor.send(1)
      print "done"
    RUBY
    assert run.success?, run
    assert_equal "done", run.out
  end

  # While the heap is compacted, nobody without the GVL may look at an object: known by a search the first time, and by what it keeps then.
  # Where a read finds nothing and may not wait, CRuby looks at the thread itself, without the GVL and once it is "stopped". (It takes the
  # access for an overflow of the stack, raises without the GVL, and crashes at the thread's end.)
  Harness::Modes::ALL.each_key do |mode|
    define_method(:"test_who_comes_back_from_IO_is_known_without_a_look_at_its_thread_under_#{mode}") do
      from, to = IO.pipe
      from.nonblock = false
      came = 0
      thread = Thread.new { 2.times { from.getc && came += 1 } }
      with_headway(mode) do
        2.times do |time|
          await("the thread's wait") { came == time && thread.stop? }
          to.write("a")
          VMFixture.keep_from_all(thread, 0.05)
        end
        assert_same thread, thread.join(10)
      end
    end
  end

  # A thread that was never begun has no storage; its class may say that it equals one that has.
  class Alike < Thread
    def ==(_other) = true
  end

  class NotBegun < Alike
    class << self
      attr_accessor :made
    end

    def initialize # no super, which Thread.new takes amiss
      self.class.made = self
    end
  end

  def test_a_thread_that_never_began_is_unknown_whatever_it_equals
    alike = Alike.new { sleep }
    assert_raises(ThreadError) { NotBegun.new { nil } }
    not_begun = NotBegun.made
    Headway.start
    assert_nil Headway.thread(not_begun).quantum_ms
    refute_predicate Headway.thread(not_begun), :batch?
    assert_raises(Headway::Error) { Headway.thread(not_begun).quantum_ms = 5 }
  ensure
    alike&.kill&.join
  end

  def test_threads_older_than_the_start_are_scheduled_too
    beside_cpu_threads(4) do
      beside_io_threads(2, pause: 0.002) do |threads|
        sleep 0.1
        with_headway do
          waits = []
          await("the older threads to run") do # by themselves they would 5 times a second
            events = Harness::VMEvents.record { sleep 0.5 }
            waits += threads.flat_map { |thread| events.of(thread).waits }
            waits.size > 400
          end
          assert_operator percentile(waits, 0.95), :<, 0.1
        end
      end
    end
  end
end
