# frozen_string_literal: true

require "harness/trap_test"

# Trap: the VM's deadlock detection counts a parked thread as alive. Nothing
# parks when nobody competes, so a real deadlock is still found.
class DeadlockTest < Harness::TrapTest
  PROGRAMS = {
    "a queue nobody fills" => "Thread::Queue.new.pop",
    "a join of a thread that stopped" => "Thread.new { Thread.stop }.join",
    "two mutexes in opposite order" => <<~RUBY
      a, b = Thread::Mutex.new, Thread::Mutex.new
      x = Thread.new { a.synchronize { sleep 0.05; b.synchronize { 1 } } }
      y = Thread.new { b.synchronize { sleep 0.05; a.synchronize { 1 } } }
      [x, y].each(&:join)
    RUBY
  }.freeze

  def test_a_deadlock_is_still_found
    Harness::Modes::ALL.each do |mode, settings|
      PROGRAMS.each do |name, program|
        run = Harness::RubyProcess.eval(<<~RUBY, limit: 20)
          require "headway"
          Headway.start(**#{settings})
          4.times.map { Thread.new { 2_000_000.times { nil } } }.each(&:join)
          #{program}
        RUBY
        refute run.timed_out, "#{name} under #{mode}: #{run}"
        assert_match(/No live threads left\. Deadlock\?/, run.err, "#{name} under #{mode}")
      end
    end
  end
end
