# frozen_string_literal: true

require "harness/trap_test"

# Trap: the handler or the job changes errno under somebody who is about to read it.
class ErrnoTest < Harness::TrapTest
  test_under Harness::Modes::ALL.keys, "errno survives signals and jobs" do
    beside_cpu_threads(1) do
      beside_io_threads(4, pause: 0.0002) do
        assert_equal 0, VMFixture.errno_changes(1)
      end
    end
  end

  test_under Harness::Modes::PREEMPTING, "a failing system call names its own error", quantum_ms: 5 do
    errors = Hash.new(0)
    beside_cpu_threads(1) do
      beside_io_threads(4, pause: 0.0002) do
        deadline = now + 1
        loop do
          errors[error_of { File.open("/nonexistent/file") }] += 1
          errors[error_of { Dir.mkdir("/") }] += 1
          errors[error_of { IO.for_fd(999_999) }] += 1
          break if now > deadline
        end
      end
    end
    assert_equal [Errno::EBADF, Errno::EEXIST, Errno::ENOENT], errors.keys.sort_by(&:name)
  end

  private

  def error_of
    yield
    nil
  rescue SystemCallError => error
    error.class
  end
end
