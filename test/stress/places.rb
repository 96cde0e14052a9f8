# frozen_string_literal: true

require "monitor"

module Stress
  # Where a thread can be for ever, until somebody raises in it, kills it or its time is up.
  module Places
    # @return [Proc] that never returns by itself
    def place(kind)
      case kind
      when :cpu then -> { nil while 1 + 1 }
      when :while_loop then -> { nil while true }
      when :allocate then -> { nil while +"object" }
      when :c_code then -> { nil while (0..2000).to_a.shuffle!.sort! }
      when :pass then -> { Thread.pass while true }
      when :sleep then -> { sleep }
      when :naps then -> { sleep 0.0005 while true }
      when :stop then -> { Thread.stop while true }
      when :queue then Thread::Queue.new.then { |queue| -> { queue.pop } }
      when :sized_queue then Thread::SizedQueue.new(1).then { |queue| -> { queue << 1 while true } }
      when :pipe then -> { reading_a_silent_pipe(&:read) }
      when :select then -> { reading_a_silent_pipe { |reader| reader.wait_readable } }
      when :mutex then -> { beside_an_owner(Thread::Mutex.new, &:lock) }
      when :monitor then -> { beside_an_owner(Monitor.new, &:enter) }
      when :condition then -> { Thread::Mutex.new.then { |mutex| mutex.synchronize { loop { Thread::ConditionVariable.new.wait(mutex) } } } }
      when :mutex_sleep then -> { Thread::Mutex.new.then { |mutex| mutex.synchronize { loop { mutex.sleep } } } }
      when :join then -> { beside_a_sleeper(&:join) }
      when :fiber then -> { computing_in_a_fiber }
      when :enumerator then -> { endless = (1..).each; loop { endless.next } }
      end
    end

    PLACES = %i[cpu while_loop allocate c_code pass sleep naps stop queue sized_queue pipe select mutex monitor condition
                mutex_sleep join fiber enumerator].freeze

    # With nothing to clean up on the way out: elsewhere an exception may strike while another one unwinds, and by Ruby's
    # rules takes its place. (Kernel#loop has a rescue clause: it doesn't count as nothing.)
    PLAIN_PLACES = %i[cpu while_loop allocate c_code pass sleep naps stop queue sized_queue].freeze

    private

    # It must come back now and then: Ruby notes an interrupt with the fiber that runs at that moment, so one that
    # arrives just before a switch waits until that fiber runs again.
    def computing_in_a_fiber
      fiber = Fiber.new { loop { 500.times { 1 + 1 } && Fiber.yield } }
      loop { fiber.resume }
    end

    # The pipe is made and closed out of reach: an exception from another thread that strikes inside IO.pipe, on stock Ruby
    # too, makes it close descriptors that an IO object still owns, and that object closes another file's later.
    def reading_a_silent_pipe
      Thread.handle_interrupt(Object => :never) do
        IO.pipe { |reader, _writer| Thread.handle_interrupt(Object => :immediate) { yield reader } }
      end
    end

    # An owner that never lets go, until we leave.
    def beside_an_owner(lock)
      owned = Thread::Queue.new
      owner = Thread.new { lock.synchronize { owned << true; sleep } }
      owned.pop
      yield lock
    ensure
      end_helper(owner)
    end

    def beside_a_sleeper
      sleeper = Thread.new { sleep }
      yield sleeper
    ensure
      end_helper(sleeper)
    end

    # What interrupts us here must not interrupt this.
    def end_helper(thread)
      Thread.handle_interrupt(Object => :never) { thread&.kill&.join }
    end
  end
end
