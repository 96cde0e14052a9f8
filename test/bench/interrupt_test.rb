# frozen_string_literal: true

require_relative "bench_process"

# Ctrl-C leaves nothing running.
class BenchInterruptTest < Minitest::Test
  include BenchProcess

  def test_interrupt_ends_the_children_too
    skip "needs /proc" unless File.directory?("/proc/self/task")

    IO.pipe do |progress, err|
      command = [RbConfig.ruby, EXECUTABLE, "bench", "fairness", "--arms", "stock", "--seconds", "30", "--cpu-threads", "1"]
      pid = Process.spawn(*command, out: File::NULL, err: err)
      err.close
      assert_match(/fairness 1/, progress.gets)
      children = wait_for { found = children_of(pid); found if found.size == 2 }
      Process.kill(:INT, pid)
      assert_equal 130, Process.wait2(pid).last.exitstatus
      assert wait_for { children.none? { File.exist?("/proc/#{_1}") } }, "children are left"
      assert_empty progress.read
    end
  end

  private

  def children_of(pid) = File.read("/proc/#{pid}/task/#{pid}/children").split

  def wait_for
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 20
    until (found = yield)
      flunk "nothing within 20 s" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.02
    end
    found
  end
end
