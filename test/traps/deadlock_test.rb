# frozen_string_literal: true

require "harness/deadlocks"
require "harness/trap_test"

# Trap: the VM's deadlock detection counts a parked thread as alive. Nothing
# parks when nobody competes, so a real deadlock is still found.
class DeadlockTest < Harness::TrapTest
  def test_a_deadlock_is_still_found
    Harness::Modes::ALL.each do |mode, settings|
      Harness::DEADLOCKS.each do |name, program|
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
