# frozen_string_literal: true

require "harness/trap_test"
require "offload/select_scheduler"

# Trap: the VM wakes all fibers that wait for one thing, and goes from one to the next through their stacks, with a method in Ruby in
# between. Should the next one leave meanwhile, as one that ran already stops it, the process crashes.
class WakeUpManyTest < Harness::TrapTest
  FIBERS = 4
  LONG_SLICES = 3 # the priority: for the VM's own slice nothing can be done

  test_under Harness::Modes::FAIR, "a queue that is closed wakes all before one of them runs" do
    queue = Thread::Queue.new
    assert_equal ALL_WOKEN, order(-> { queue.pop }, -> { queue.num_waiting }) { queue.close }
  end

  test_under Harness::Modes::FAIR, "a condition that is broadcast wakes all before one of them runs" do
    condition = Thread::ConditionVariable.new
    waiting = 0
    wait = -> { Thread::Mutex.new.tap(&:lock).then { |mutex| (waiting += 1) && condition.wait(mutex) } }
    assert_equal ALL_WOKEN, order(wait, -> { waiting }) { condition.broadcast }
  end

  # Between two of them, too, the VM looks for interrupts: there nothing but the method that wakes them is on the stack.
  test_under Harness::Modes::FAIR, "nobody runs between two wake-ups" do
    %w[close broadcast].each { |name| assert_equal %i[through ran], order_beside(VMFixture.make_busy(Object.new, name).method(name)) }
    assert_equal %i[ran through], order_beside(VMFixture.make_busy(Object.new, "read").method("read"), seconds: 0.5)
  end

  # One that wakes a single fiber makes way as ever.
  test_under Harness::Modes::FAIR, "a fiber that is woken alone runs at once" do
    queue = Thread::Queue.new
    order = order(-> { queue.pop }, -> { queue.num_waiting }, seconds: 0.05) { FIBERS.times { queue << true } }
    assert_equal ALL_WOKEN.sort, order.sort
    refute_equal ALL_WOKEN, order
  end

  private

  ALL_WOKEN = ([:woken] * FIBERS + [:ran] * FIBERS).freeze
  private_constant :ALL_WOKEN

  # @param seconds [Numeric] for so long it takes to wake a fiber
  # @return [Array<Symbol>] what came after what
  def order(wait, waiting, seconds: 0.005)
    log = []
    waker = Thread.new do
      Thread.current.priority = LONG_SLICES
      sleep 0.001 until waiting.call == FIBERS
      compute(0.05)
      yield
    end
    SelectScheduler.run do |scheduler|
      scheduler.extend(Lingering).linger(seconds, log)
      FIBERS.times { Fiber.schedule { wait.call.then { log << :ran } } }
    end
    waker.join
    log
  end

  # @param seconds [Numeric] that the call takes, unless the other thread runs meanwhile
  # @return [Array<Symbol>] which came first: that the call was through, or that another thread ran that it might have let go first
  def order_beside(call, seconds: 0.03)
    log = []
    reader, writer = IO.pipe
    other = Thread.new { reader.read(1) && log << :ran }
    Thread.new do
      Thread.current.priority = LONG_SLICES
      compute(0.05)
      call.call(writer.fileno, log, seconds)
      log << :through
    end.join
    other.join
    log
  end

  # Of a scheduler: whoever is woken could run long before it is through.
  module Lingering
    include Harness::Timing

    def linger(seconds, log)
      @seconds = seconds
      @log = log
    end

    def unblock(...)
      super
      compute(@seconds)
      @log << :woken
    end
  end
  private_constant :Lingering
end
