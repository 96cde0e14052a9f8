# frozen_string_literal: true

module Headway
  class FiberScheduler
    # Waits for locks, queues, other fibers and the time.
    module Blocking
      # Waits until {#unblock} names the fiber, or the time is over.
      #
      # @param timeout [Numeric, nil] seconds
      # @return [Boolean] false when the time was over
      def block(blocker, timeout = nil)
        return wait_aside(timeout) unless here?

        fiber = Fiber.current
        waits = true
        timer = after(timeout) { fiber.transfer(false) if waits } if timeout
        outer = @blocked[fiber]
        @within[fiber] = true if outer
        @blocked[fiber] = blocker
        woken = @loop.transfer ? true : false
      ensure
        if fiber
          waits = false # first, as the next: up to here nothing that strikes the thread can come in between
          @blocked.delete(fiber)
          early = @woken.delete(fiber) # what woke it, or was to be raised in it, concerned this wait only
          @struck.delete(fiber)
          outer ? return_to(fiber, outer, woken || early) : @within.delete(fiber)
          timer&.cancel!
          resumed if @idle
          lock_again(blocker) if woken.nil? && blocker.is_a?(Thread::Mutex) && locked_before?(caller_locations(2, 1).first)
        end
      end

      # Ends a fiber's {#block}, from any thread. One that comes before the fiber has begun to wait is not lost: the fiber has
      # to hand over to the loop first, and the loop finds it. What another thread raises waits until it is done (Ruby 4.0 sees
      # to that itself): in between, the waker would count as queued for ever, and nobody would be woken any more.
      def unblock(blocker, fiber)
        unstruck do
          @woken[fiber] = @woken.key?(fiber) || !blocker.is_a?(Thread::Queue) || blocker
          @aside[fiber]&.push(true)
          selector = @selector
          next if selector.nil? || closed?

          selector.push(@waker) if @waker.queue?
          selector.wakeup
        end
      end

      ANYTHING_LATER = { Object => :never }.compare_by_identity.freeze # so the VM makes no copy of it
      private_constant :ANYTHING_LATER

      # @param duration [Numeric, nil] seconds
      # @raise [ArgumentError, TypeError] as Kernel#sleep
      def kernel_sleep(duration = nil)
        block(:sleep, seconds(duration))
        true
      end

      # Raises in the fiber when the block takes longer.
      #
      # @param duration [Numeric] seconds
      # @return what the block returns
      def timeout_after(duration, exception, message, &block)
        # Who gives no exception gets Timeout::Error, but only outside the block: no rescue in it takes what threads get (net-http
        # retries after the former). Newer versions of Timeout bring such an exception along, and call this from a block of theirs;
        # before 0.4.3 it doesn't tell none from Timeout::Error.
        none_given = exception.equal?(Timeout::Error) && called_by_old_timeout?(caller_locations(1, 1).first)
        return Fiber.blocking { Timeout.timeout(duration, none_given ? nil : exception, message, &block) } unless here?

        fiber = Fiber.current
        expired = Expired.new(message) if none_given
        waits = true
        timer = after(duration) do
          resume_woken if @woken.key?(fiber) # whoever was woken in vain wakes nobody else
          fiber.raise(*expired || [exception, message]) if waits
        end
        yield duration
      rescue Expired => error
        raise unless error.equal?(expired)

        raise exception, message
      ensure
        waits = false
        timer&.cancel!
      end

      Expired = Class.new(Exception)
      private_constant :Expired

      # Raises in a fiber that waits, from any thread (Ruby 4.0: another one closes the IO it waits for). As in {#unblock}, one that comes
      # before the fiber has begun to wait is not lost; but one that comes as the wait ends must not strike the next.
      #
      # @param fiber [Fiber, Object, false] false: a thread's first one, of which there is no object yet
      # @return [Boolean] false: the loop can't, as there is none, or the fiber blocks it; {Native::InterruptHook} has Ruby raise in the
      #   thread then. But once: where a hook blocks, Ruby asks both for its own operation, which called the hook, and for the one in there
      def fiber_interrupt(fiber, exception)
        selector = @selector
        blocks = !fiber || (fiber.is_a?(Fiber) && fiber.blocking?)
        return @thread.pending_interrupt?(exception.class) if blocks || selector.nil? || closed?

        @struck[fiber] = exception
        selector.push(Interruption.new(fiber, @struck))
        selector.wakeup
        true
      end

      # Lets every fiber that can run do so first.
      def yield
        here? ? queued { @selector.yield } : Thread.pass
      end

      # Stands in the selector's queue for an exception to be raised in a fiber.
      Interruption = Struct.new(:fiber, :struck) do
        def alive? = true

        def transfer
          exception = struck.delete(fiber)
          fiber.raise(exception) if exception && fiber.alive?
        end
      end
      private_constant :Interruption

      private

      # A signal's handler has waited where the fiber was just about to. Whom of the two it was that was woken can't be told.
      def return_to(fiber, outer, woken)
        @blocked[fiber] = outer
        @woken[fiber] = true if woken
      end

      # A thread that fills a queue may be switched away between choosing who is woken and waking it; who was interrupted meanwhile waits
      # for something else by then. (What wakes a sleep may be another thing than a sleep: a ConditionVariable.)
      def concerns?(woken, fiber)
        woken == true || woken.equal?(@blocked[fiber]) || @within.key?(fiber)
      end

      # What strikes who is about to have its mutex back after ConditionVariable#wait or Mutex#sleep has to wait until it does, as in a
      # thread: the code around unlocks it.
      def lock_again(mutex)
        mutex.lock
      ensure
        lock_again(mutex) unless mutex.owned?
      end

      # Who calls our caller: Mutex#sleep, ConditionVariable#wait, which up to Ruby 3.4 calls that one, or one of those that lock.
      def locked_before?(caller) = %w[sleep wait].include?(caller.base_label)

      # As without a scheduler, but that {#unblock} ends it.
      def wait_aside(timeout)
        fiber = Fiber.current
        @aside[fiber] = wake = Thread::Queue.new
        @woken.key?(fiber) || Fiber.blocking { wake.pop(timeout: timeout) } || false
      ensure
        @aside.delete(fiber)
        @woken.delete(fiber)
      end

      def called_by_old_timeout?(caller) = caller.base_label == "timeout" && !caller.label.start_with?("block ")

      # What another thread raises waits until the block, which must not switch fibers, is done.
      def unstruck(&) = Thread.handle_interrupt(ANYTHING_LATER, &)

      # An exception that strikes the timers while they sort themselves has them forget one later; so none runs fibers in there.
      # One that strikes before our caller has the timer, or as it cancels it, leaves it to fire: the action knows itself whether
      # it is still wanted, or it would end a later wait.
      #
      # @return [IO::Event::Timers::Handle, nil] nil: endless
      def after(duration, &action)
        duration = duration.to_f
        return if duration.nan? || duration == Float::INFINITY

        @timers.after([duration, 0.0].max) { @due << action }
      end

      # @return [Float, nil] nil: endless
      def seconds(duration)
        return if duration.nil?
        raise TypeError, "can't convert #{duration.class} into time interval" unless duration.respond_to?(:divmod) && duration.respond_to?(:to_f)

        number = duration.to_f
        raise ArgumentError, "time interval must not be negative" if number.negative?
        raise FloatDomainError, "NaN" if number.nan?

        number
      end
    end
  end
end
