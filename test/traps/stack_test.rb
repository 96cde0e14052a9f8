# frozen_string_literal: true

require "harness/trap_test"

# Traps: a signal at the very end of a stack, and jobs in the depth of other things.
class StackTest < Harness::TrapTest
  test_under Harness::Modes::PREEMPTING, "deep recursion still ends in a SystemStackError", quantum_ms: 1 do
    beside_io_threads(4, pause: 0.0003) do
      depths = Array.new(2) { Thread.new { Array.new(10) { overflow } } }.flat_map(&:value)
      main = Array.new(3) { overflow }
      assert_equal [SystemStackError], (depths + main).uniq
    end
  end

  test_under Harness::Modes::PREEMPTING, "deep recursion in c still ends in a SystemStackError", quantum_ms: 1 do
    beside_io_threads(4, pause: 0.0003) do
      errors = Array.new(5) do
        nested = nest(20_000) # a new one: of one that ended so before the VM keeps for good that it is at it, and goes no deeper
        make_room { nest(2_000).to_s }
        Marshal.dump(nested)
        nested.flatten.size
        nested.to_s.size
      rescue SystemStackError => error
        error.class
      end
      assert_equal [SystemStackError] * 5, errors
    end
  end

  test_under Harness::Modes::PREEMPTING, "fibers that compute are preempted like their thread", quantum_ms: 1 do
    beside_io_threads(3, pause: 0.0005) do
      results = Array.new(3) do |index|
        Thread.new do
          fibers = Array.new(20) { Fiber.new { 10.times.sum { compute(0.0005); Fiber.yield; 1 } } }
          sum = 0
          until fibers.empty?
            fibers.reject! do |fiber|
              value = fiber.resume
              sum += value if value && !fiber.alive?
              !fiber.alive?
            end
          end
          sum + index
        end
      end.map(&:value)
      assert_equal [200, 201, 202], results
    end
  end

  test_under Harness::Modes::PREEMPTING, "trace points and exceptions survive preemption", quantum_ms: 1 do
    lines = 0
    beside_cpu_threads(1) do
      beside_io_threads(3, pause: 0.0005) do
        trace = TracePoint.new(:line) { lines += 1 }
        trace.enable(target_thread: Thread.current) { 2_000.times { lines.succ } }
        sum = 0
        3_000.times { |number| begin; raise IndexError, number.to_s; rescue IndexError => e; sum += e.message.to_i; end }
        assert_equal 2_999 * 3_000 / 2, sum
        assert_equal 500, 500.times.count { catch(:out) { loop { throw :out, true } } }
      end
    end
    assert_operator lines, :>=, 2_000
  end

  private

  def nest(levels) = levels.times.inject(nil) { |inner| [inner] }

  # Where a recursion in C ends while the VM looks for a page with room for an object, any Ruby hangs or ends with "system stack overflow
  # during GC", though nothing is collected: with 100 objects a level, 4 times of 100, with Headway or without.
  def make_room(&)
    GC.disable
    30.times(&)
    GC.enable
    GC.start
    GC.disable
  end

  def overflow
    deeper
  rescue SystemStackError => error
    error.class
  end

  def deeper = deeper + 1
end
