# frozen_string_literal: true

require "timeout"
require_relative "base"

begin
  require "io/event"
rescue LoadError => error
  raise unless error.path == "io/event"

  raise Headway::Error, "Headway::FiberScheduler needs the gem io-event: put  gem \"io-event\"  into the Gemfile"
end

# Ruby 4.0 says once a process that IO::Buffer is experimental, now at the line of the application whose hook gets the first buffer,
# where nobody asked for one.
if RUBY_VERSION >= "4.0"
  experimental = Warning[:experimental]
  begin
    Warning[:experimental] = false
    IO::Buffer.new(1).free
  ensure
    Warning[:experimental] = experimental
  end
end

module Headway
  class FiberScheduler # named before its parts are, so that they don't ask for this file again
  end
end

require_relative "forks"
require_relative "fiber_scheduler/blocking"
require_relative "fiber_scheduler/connecting"
require_relative "fiber_scheduler/elsewhere"
require_relative "fiber_scheduler/failures"
require_relative "fiber_scheduler/inputs"
require_relative "fiber_scheduler/offload"
require_relative "fiber_scheduler/poll_set"
require_relative "fiber_scheduler/processes"
require_relative "fiber_scheduler/scheduled"
require_relative "fiber_scheduler/stalls"
require_relative "fiber_scheduler/stand_ins"

module Headway
  # Runs the fibers of one thread: while one waits for I/O, a timer, a lock or a process, others go on.
  #
  #   Fiber.set_scheduler(Headway::FiberScheduler.new)
  #   Fiber.schedule { … }
  #
  # It needs the gem io-event, whose selectors (epoll, io_uring, kqueue) it waits in; IO_EVENT_SELECTOR chooses one by name.
  # A scheduler belongs to the thread that first runs a fiber with it. There one fiber runs the loop: the one that made the scheduler, if it
  # did so on this thread and blocks; else the one that runs the first fiber with it, if that blocks. (One that doesn't, as an Enumerator's,
  # may be gone when the loop is needed.) Where neither does, it is the maker's all the same, if that is of this thread, or else that of the
  # next blocking one that runs a fiber with it.
  #
  # A fiber that ends with an exception takes nothing else down: the exception is reported as Ruby reports a thread's, the other
  # fibers go on, and {#run} raises the first one when all have ended. `on_error:` takes them over instead.
  class FiberScheduler
    # Raised in fibers that wait when the loop ends early. Below Exception, so that no ordinary rescue takes it.
    Stop = Class.new(Exception)

    include Blocking
    include Inputs
    include Offload
    include Processes
    include Native::AddressHook, Native::InterruptHook if Headway.supported? # above Processes' and Blocking's, which they ask

    # Longest wait in one turn of the loop: some selectors cannot count further.
    LONGEST_WAIT = 86_400.0
    private_constant :LONGEST_WAIT

    # @param pool [true, #call, nil] runs the blocking operations that Ruby hands over (3.4 and later): true for an {OffloadPool} of
    #   the scheduler's own, closed with it; any other is left open; nil: they block the loop
    # @param on_error [#call, nil] called with the exception and the fiber when a fiber ends with one
    # @param stall_ms [Numeric, nil] a turn of the loop longer than this is a stall; nil: nothing is watched
    # @param on_stall [#call, nil] called on the loop with each {Stall}
    # @raise [ArgumentError] a stall_ms that is no time, a pool, an on_error or an on_stall that cannot be called
    def initialize(pool: true, on_error: nil, stall_ms: LoopStall::LONG_MS, on_stall: nil)
      @failures = Failures.new(callable(on_error, "on_error"))
      @stalls = stalls(stall_ms, callable(on_stall, "on_stall"))
      @idle = @turning = @sorting = false
      @looking = !CLOSED_EVERY # a timer that looks for closed IOs; true: nobody has to
      @timers = IO::Event::Timers.new
      @due = []                           # what is to be done as its time has come
      @blocked = {}.compare_by_identity   # fiber => what it waits for, in #block
      @selecting = {}.compare_by_identity # fiber => what it waits for, in the selector
      @within = {}.compare_by_identity    # fibers that wait within another wait
      @woken = {}.compare_by_identity     # fibers that #unblock named and that have not run since: the queue that woke them, or true
      @struck = {}.compare_by_identity    # fiber => what is to be raised in the wait it is in, or about to begin
      @queued = {}.compare_by_identity    # fibers that wait for nothing but their turn, in the selector's queue
      @aside = {}.compare_by_identity     # fiber that the loop has no part in => what wakes it
      @given_up = {}                      # descriptors of which the selector may still know from a wait that came to nothing
      @waker = Waker.new(self)
      @thread = Thread.current
      @loop = Fiber.current
      @fibers = @turns = 0
      offload_to(pool)
    end

    # @return [#call, nil] what runs blocking operations
    attr_reader :worker_pool

    # Runs the loop until no fiber waits any more. Under Headway's scheduler of threads it is interactive: a loop under load hardly sleeps,
    # and every worker that comes back would preempt it as a batch thread, in the middle of a turn.
    #
    # @raise [Exception] what the first of the failed fibers ended with, unless on_error took it
    # @raise [Error] on another fiber than the loop's
    def run
      return if closed?

      attach unless @selector
      settle unless @loop
      refuse unless Fiber.current.equal?(@loop)

      @left = true # by an exception, unless we come to the end
      Headway.interactive { turning { turn while pending? } }
      @left = false
      @stalls.idle
      @failures.raise_first
    end

    # Runs what is left to run, then gives everything back. When an exception (Interrupt, SystemExit) is about to end the thread,
    # or somebody kills it, what the fibers wait for may never come: {Stop} is raised in them, and they run to their ends. Inside a
    # rescue clause the rescued exception counts as such, unless the first fiber was started in there, too.
    #
    # @raise [Error] on another fiber than the loop's, or another thread: nothing is lost, and the loop goes on
    def close
      refuse if elsewhere?
      Fiber.scheduler.equal?(self) ? Fiber.set_scheduler(nil) : scheduler_close
    end

    # Called by Ruby when the thread ends or gets another scheduler.
    def scheduler_close
      refuse if elsewhere? # or what waits in the loop would be left without a selector
      keeping_error { wind_up } unless closed?
    end

    # @return [Boolean]
    def closed? = @closed ? true : false

    # Hands over to the loop. The fiber goes on when somebody transfers to it.
    def transfer
      @loop.transfer
    end

    # @return [Fiber] that runs the block, from now until it first waits
    def fiber(**options, &block)
      attach unless @selector
      settle if @loop.nil? && Fiber.current.blocking?
      raise Error, "this scheduler is closed" if closed?

      @fibers += 1
      failures = @failures
      fiber = Scheduled.new(blocking: false, **options) { failures.watch(&block) }
      start(fiber)
      fiber
    end

    # @return [Hash{Fiber => Object}] the fibers that wait, and what for: an IO, a process's number, a lock, …
    def waiting = @blocked.merge(@selecting)

    # @return [Hash] fibers started, fibers waiting, turns of the loop, fibers that ended with an exception; stalls: threshold and
    #   longest in seconds, count, and the last ones as {Stall}s' hashes; nil when nothing is watched
    def stats
      { fibers: @fibers, waiting: @blocked.size + @selecting.size, turns: @turns, errors: @failures.count, stalls: @stalls.to_h }
    end

    # Resumes the fibers that {#unblock} named: on the loop, through {Waker}.
    # @api private
    def resume_woken
      @woken.size.times do
        fiber, woken = @woken.shift
        fiber.transfer(true) if @blocked.key?(fiber) && concerns?(woken, fiber)
      end
    end

    # In a forked child: the fibers stayed behind, and so did what they wait for. (A selector in Ruby closes IOs, which is no operation to
    # hand over any more: who waited for it here would go on in the parent's loop.)
    # @api private
    def start_afresh
      return if closed?

      @closed = true
      Fiber.blocking { @selector&.close }
      Fiber.set_scheduler(nil) if Fiber.scheduler.equal?(self)
    end

    # In the daemon the calling fiber takes the place of the thread's first one, which is the loop's: when a fiber ends, Ruby goes on
    # in it, whatever it waits for.
    # @api private
    def before_daemon
      return if @loop.nil? || Fiber.current.equal?(@loop)

      raise Error, "Process.daemon in a fiber would take its loop from all of them: call it before, or outside of any fiber"
    end

    private

    # A scheduler may be made on one thread and used on another. On the one it was made on, the maker has the loop if it can: a blocking
    # fiber that it resumed ends or is left behind, and Ruby goes on in the thread's first one whenever a fiber of the loop ends.
    def attach
      @loop = nil unless @thread.equal?(Thread.current)
      @loop = Fiber.current if Fiber.current.blocking? && !(@loop&.alive? && @loop.blocking?)
      @thread = Thread.current
      @rescued = $!
      @stalls.start
      @selector = IO::Event::Selector.new(@loop || @home = Home.new)
      Forks.watch(self)
    end

    # Where the first fiber couldn't tell whose the loop will be. No fiber has begun yet.
    def settle
      @home.fiber = @loop = Fiber.current
    end

    # Whether the loop is somebody else's, who still can run it.
    def elsewhere? = @selector && !closed? && !Fiber.current.equal?(@loop) && @loop&.alive?

    def refuse = raise Error, "the loop can only be run on the fiber it began on"

    # The loop's fiber is with the loop: whoever runs was transferred to.
    def turning
      before = @turning
      @turning = true
      yield
    ensure
      @turning = before
    end

    def start(fiber)
      return @selector.push(newborn(fiber)) if @sorting # a signal's handler started it

      if Fiber.current.equal?(@loop)
        turning { fiber.transfer }
      else
        here? ? queued { @selector.resume(fiber) } : @selector.push(newborn(fiber))
      end
    end

    # The selector doesn't tell whom it has in its queue, and they, too, have to end when the loop ends early.
    def queued
      @queued[fiber = Fiber.current] = :born
      yield
    ensure
      @queued.delete(fiber)
      @struck.delete(fiber)
    end

    def newborn(fiber)
      @queued[fiber] = :unborn
      Newborn.new(fiber, @queued)
    end

    def pending? = !(@blocked.empty? && @selecting.empty?) || @selector.ready?

    # The selector waits and resumes fibers in one call. So whoever is resumed first says that the loop no longer waits.
    def turn
      @turns += 1
      @own_pool&.turned
      left = !@woken.empty? && !@selector.ready? # an exception (exit, Interrupt) left the loop before all that were woken had run
      @waker.transfer if left
      @selector.ready? ? @stalls.turn : wait # who is told of a stall may start fibers
      interval = left || !@due.empty? ? 0 : sorting { @timers.wait_interval }
      @selector.select(interval && interval.clamp(0.0, LONGEST_WAIT))
      resumed if @idle
      fire
    end

    # What left the loop early has it come here again, for the rest.
    def fire
      sorting { @timers.fire }
      while (action = @due.first)
        action.call
        @due.shift
      end
    end

    # Nothing raises in here. A signal's handler may run, and start fibers: they begin later, or their timers would be lost.
    def sorting
      unstruck do
        @sorting = true
        yield
      ensure
        @sorting = false
      end
    end

    def wait
      @stalls.idle
      @idle = true
    end

    def resumed
      @idle = false
      @stalls.turn
    end

    # Whether the caller can hand over to the loop. It can't on a worker thread that Ruby lets call a hook; nor in a fiber that the
    # loop's own fiber resumed (an Enumerator's), and so waits for.
    def here? = @selector && Thread.current.equal?(@thread) && (@turning || Fiber.current.is_a?(Scheduled))

    # A clause that rescues and one that ensures look the same from here. But what was there when the loop began ends nothing.
    def ending? = ($! && !$!.equal?(@rescued)) || Thread.current.status == "aborting"

    # Each once, and none that is born meanwhile: what an ensure clause waits or starts fibers for is to be done. Hence not by
    # Fiber#kill either, which would strike again after every wait.
    def stop_fibers
      waiting.merge(@queued).each_key { |fiber| @queued[fiber] == :unborn ? fiber.kill : fiber.raise(Stop) if fiber.alive? }
    end

    # At a thread's end Ruby keeps what ends the thread where a rescue of ours would delete it.
    if Headway.supported?
      def keeping_error(&) = Native.keep_error(&)
    else
      def keeping_error = yield
    end

    def wind_up
      @left = nil unless @left # false was a run before
      @left = true if ending?
      run unless @left
    ensure
      begin
        finish unless @left == false || @selector.nil? || closed?
      ensure
        release
      end
    end

    # What the fibers end with has had its report, and what ended the loop goes on; but for an exit in one of their ensure clauses.
    def finish
      @failures.hold
      stop_fibers
      turning { turn while pending? }
      @failures.raise_held
    end

    def release
      @closed = true
      @selector&.close
    ensure
      begin
        @stalls.close
      ensure
        @own_pool&.close
      end
    end

    def callable(value, name)
      return value if value.nil? || value.respond_to?(:call)

      raise ArgumentError, "#{name} is #{value.inspect[0, 60]}: give something to call, or nil"
    end

    def stalls(threshold_ms, callback)
      return Unwatched if threshold_ms.nil? || !Headway.supported? || Ractor.current != Ractor.main
      return Stalls.new(threshold_ms / 1000.0, callback, @failures) if threshold_ms.is_a?(Numeric) && (1..3_600_000).cover?(threshold_ms)

      raise ArgumentError, "stall_ms is #{threshold_ms.inspect}: give a number of milliseconds from 1, or nil"
    end
  end
end
