# frozen_string_literal: true

require "harness/trap_test"

# Trap: a filter that kills the process for a system call that elsewhere is only refused.
class ForbiddenCallTest < Harness::TrapTest
  test_under Harness::Modes::ALL.keys, "nobody is killed where setting priorities is forbidden" do |mode|
    Headway.stop
    VMFixture.forbid_sched_setattr
    with_headway(mode) do
      beside_cpu_threads(2) { sleep 0.05 }
      assert_operator Headway.stats[:process][:running], :>, 0
    end
  end
end
