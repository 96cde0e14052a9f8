# frozen_string_literal: true

require "fiber_scheduler/scheduled"

# What a wait that was given up leaves behind: nothing.
class FiberSchedulerGivenUpTest < Minitest::Test
  include Scheduled

  # Of old, selectors took the process's new descriptor for the one they still had in mind.
  def test_a_process_is_waited_for_again
    ended = scheduled do
      pid = spawn("sleep 60")
      begin
        Timeout.timeout(0.01) { Process.wait(pid) }
      rescue Timeout::Error
        Process.kill(:TERM, pid)
      end
      Timeout.timeout(patience(10)) { Process.wait2(pid)[1].termsig }
    end
    assert_equal Signal.list["TERM"], ended
  end
end
