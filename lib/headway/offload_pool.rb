# frozen_string_literal: true

require_relative "forks"
require_relative "offload/block"
require_relative "offload/errors"
require_relative "offload/hand_over"
require_relative "offload/job"
require_relative "offload/line"
require_relative "offload/ticket"
require_relative "offload/workers"
require_relative "processors"

module Headway
  # Threads that run blocking operations while the fiber that wants the result waits and the event loop goes on.
  #
  # Three things hold whatever happens: an operation runs at most once; a fiber leaves {call} only when no worker runs its operation
  # any more; and what is raised in a waiting fiber (a timeout, a kill, a stop) goes on in it, after its operation was interrupted if
  # it can be, else when it is over (the statistics count that as cancelled_but_ran). Of several the gravest goes on: a kill, then
  # what is no StandardError, then what came first.
  #
  # Workers are started as they are needed, again when something killed them, and afresh in a forked child.
  class OffloadPool
    include Workers

    # A scheduler's blocking_operation_wait(work), for a class of schedulers that keep an OffloadPool in @worker_pool (nil: none any
    # more). It is faster than one that calls {#call}, as it can decline an operation.
    Hook = Native::OffloadHook

    # What a scheduler gets whose hook may call io_wait on a worker.
    module WorkerWait
      def io_wait(io, events, timeout = nil)
        OffloadPool.worker? ? io.wait(events, timeout) : super
      end
    end
    private_constant :WorkerWait

    FULL_RULES = [:inline, :wait, :raise].freeze
    MOST = (1 << 31) - 1 # workers, and places in the queue
    LOOK_AGAIN = 0.1 # seconds
    private_constant :MOST, :LOOK_AGAIN

    # @return [Integer] how many operations run at once at most
    attr_reader :workers
    # @return [Integer] how many more may wait for a worker
    attr_reader :queue
    # @return [:inline, :wait, :raise] what becomes of an operation when the queue is full: it runs where it is; its fiber waits for a
    #   place; {FullError}
    attr_reader :full
    # @return [Numeric, nil] seconds an operation may take, waiting included
    attr_reader :deadline

    # @return [:adaptive, :always, :never] what is handed over: see {#initialize}
    attr_reader :mode

    # @param workers [Integer] how many operations run at once at most
    # @param queue [Integer] how many more may wait for a worker
    # @param full [:inline, :wait, :raise]
    # @param deadline [Numeric, nil] seconds an operation may take, waiting included
    # @param mode [:adaptive, :always, :never] which of the VM's operations are handed over: those that are much longer than a
    #   hand-over, by the place they are called from, and of streams of short ones now and then one, so that the loop turns; all; none.
    #   HEADWAY_OFFLOAD in the environment overrides it.
    # @raise [ArgumentError] a value that means nothing, in the environment too
    def initialize(workers: (processors = Processors.count), queue: 256, full: :inline, deadline: nil, mode: :adaptive)
      @workers = whole(workers, "workers")
      @crew = [[@workers, processors || Processors.count].min - 1, 1].max
      @queue = whole(queue, "queue")
      @full = FULL_RULES.find { |rule| rule.to_s == full.to_s } ||
              raise(ArgumentError, "full is #{full.inspect}: give #{FULL_RULES[0..-2].join(", ")} or #{FULL_RULES.last}")
      @deadline = OffloadPool.deadline(deadline)
      @mode = Settings.offload(mode)
      @mode = Settings.offload(ENV["HEADWAY_OFFLOAD"], from: "HEADWAY_OFFLOAD") if ENV.key?("HEADWAY_OFFLOAD")
      @mode = :never if Settings.disabled?
      @closed = false
      @scheduler = nil
      start
      Forks.watch(self)
    end

    @making = Mutex.new

    class << self
      # @return [OffloadPool] what {Headway.offload} uses, made at its first use
      def default
        return @default unless @default.nil? || @default.closed?

        made = new # others may do the same meanwhile: the first one stays, the others have no threads and go
        begin
          @making.synchronize { @default = made if @default.nil? || @default.closed? }
        rescue ThreadError # a signal's handler can't lock
          @default = made
        end
        @default
      end

      # @!visibility private
      def deadline(value)
        return value if value.nil? || (value.is_a?(Numeric) && value.real? && value.positive?)

        raise ArgumentError, "deadline is #{value.inspect}: give seconds above 0, or nil for none"
      end

      # @!visibility private
      # @return [Boolean] whether the current thread is a worker of some pool
      def worker?
        Thread.current.thread_variable_get(:headway_offload) == true
      end
    end

    # Runs an operation on a worker, or where it is if that is cheaper or the queue is full, and returns when it is done. This is what a
    # fiber scheduler's blocking_operation_wait calls (or it includes {Hook}, which is faster). On a worker and on a blocking fiber of a
    # thread with a scheduler nothing would be won: it runs there. On a thread without a scheduler only that thread waits.
    #
    # @param work [#call] called once
    # @return what it returned
    # @raise [ArgumentError] nothing to call, or an operation of the VM that ran already (from Ruby 4.0 on the VM's own RuntimeError)
    # @raise [ClosedError, FullError, DeadlineError, WorkerError, ForkError]
    def call(work)
      raise ArgumentError, "#{work.inspect} can't be called" unless work.respond_to?(:call)
      raise closed_error if @closed
      raise ArgumentError, "this operation ran already" if spent?(work)

      adopt unless @scheduler.equal?(Fiber.scheduler)
      stays_here? ? inline(work) : Native.offload_operation(self, @costs, work)
    end

    # Runs a block on a worker and returns what it returns: for calls that block without asking the scheduler (key derivation, SQLite,
    # name look-ups). What it raises or throws, and a break, arrive as if it had run here.
    #
    # @param deadline [Numeric, nil] seconds, waiting included
    # @return what the block returns
    # @raise [ArgumentError] no block, or a deadline that means nothing
    # @raise [ClosedError, FullError, DeadlineError, WorkerError, ForkError]
    def run(deadline: @deadline, &block)
      raise ArgumentError, "no block to run" unless block
      raise closed_error if @closed

      OffloadPool.deadline(deadline)
      return here(&block) if stays_here? || @mode == :never

      Block.run(block) { |work| hand_over(work, deadline) { here(&block) } }
    end

    # A scheduler may tell at each turn of its loop that it turned; then streams of short operations need not make it turn.
    def turned
      Native.offload_turned(@costs)
    end

    # Ends the workers when every operation handed over before is done, and waits for that; but not in one of these, as another one
    # that does the same would wait for it.
    # @return [nil]
    def close
      @closed = true
      make_room
      @pending.close
      threads = locked { @threads.keys }
      threads.each(&:join) unless threads.include?(Thread.current)
      nil
    end

    # @return [Boolean]
    def closed? = @closed

    # @return [Hash] workers: alive now; queued: operations that wait now; and since the start:
    #   ran: operations run on a worker; inline: run where they were; withdrawn: given up before a worker took them;
    #   cancelled: interrupted (for those of the VM: or over just then, which it doesn't tell); cancelled_but_ran: nobody wanted the
    #   result any more, but they could not be stopped; late: the same after a deadline; full: times the queue was;
    #   busy: seconds of all workers
    def stats
      inline = Native.offload_chosen(@costs).first(2).sum + @inline
      locked { { workers: @threads.size, queued: @line.queued.size, **@counts, inline: inline } }
    end

    # @!visibility private
    # What the native part calls before IO.copy_stream runs on a worker, which waits through the scheduler.
    def guard_io_wait
      Fiber.scheduler&.singleton_class&.prepend(WorkerWait)
    end

    # @!visibility private
    # What the native part calls for an operation that is worth it, or whose place it knows too little of.
    def hand_over_operation(work, place, light)
      return inline(work) if OffloadPool.worker? # in a block that has a loop of its own: it may be the only worker

      hand_over(work, @deadline, place, light) { inline(work) }
    end

    # @!visibility private
    # The same for what closes a descriptor, which is done whatever happens: interrupted by nothing, and here if no worker has done it.
    def hand_over_close(work, place, light)
      done = false
      closing = -> { Thread.handle_interrupt(MASKED) { work.call.then { done = true } } }
      OffloadPool.worker? || hand_over(closing, nil, place, light) { nil }
    rescue Error
      nil # full, closed, forked, or the worker was killed
    ensure
      Thread.handle_interrupt(MASKED) { inline(work) } unless done
    end

    # @!visibility private
    # Hands work to a worker and waits for it.
    #
    # @yield to run it inline, when the queue is full and that is the rule, and in a signal handler
    def hand_over(work, deadline, place = nil, light = false)
      start_afresh
      return yield if trap?

      job = Job.new(self, work, deadline, place, light)
      Native.offload_wait(job)
      case job.state
      when :withdrawn
        return yield unless job.late?

        raise DeadlineError, "no worker was free for this operation within its deadline, #{deadline} s: it never ran"
      else
        raise DeadlineError, "stopped this operation at its deadline, #{deadline} s" if job.late? && !job.ended?
        raise with_caller(job.error) if job.error

        job.value
      end
    ensure
      job&.forget
    end

    # @!visibility private
    # @return [Boolean] false: no place in the queue, or not in time
    def enqueue(job, timeout)
      return true if job.light? && line_up(job)

      ticket = @full == :wait ? wait_for_ticket(job, timeout) : ticket_at_once(job)
      job.ticket = ticket if ticket && @line.join(job)
      hire if ticket && (@full == :wait || @pending.size > @pending.num_waiting) # which counts those, too, who wait for a place
      take_back(job) if ticket && @threads.empty?
      !ticket.nil?
    rescue ClosedQueueError, FullError => error
      job.refuse # one that is withdrawn later is counted as given up
      raise error.is_a?(FullError) ? error : closed_error
    end

    # @!visibility private
    # A worker is done with the job: the only place where jobs are counted, so that each is counted once.
    def ran(job)
      @lock.synchronize do
        @counts[:ran] += 1
        @counts[:busy] += job.wall_ns / 1e9
        unwanted(job) if job.interrupted?
      end
      return unless job.place

      Native.offload_done(@costs)
      Native.offload_learn(@costs, job.place, job.wall_ns, job.cpu_ns) if job.ended?
    end

    # @!visibility private
    # Nobody wants the result of a job any more that no worker had yet.
    def withdrawn(job)
      @lock.synchronize do
        @counts[:withdrawn] += 1
        @vacancies.add(job.ticket)
        @line.leave(job)
      end
    end

    # @!visibility private
    # In a forked child: the parent's workers aren't here.
    def start_afresh
      return if Process.pid == @pid

      left = @threads.values.compact
      left.concat(@line.queued)
      @closed ? @pid = Process.pid : start
      left.each(&:abandon)
    end

    private

    def whole(value, name)
      return value if value.is_a?(Integer) && value.between?(1, MOST)

      raise ArgumentError, "#{name} is #{value.inspect}: give a whole number from 1 to #{MOST}"
    end

    # The VM's work points into a frame that may be gone when it is called again. Only such work has no source.
    def spent?(work)
      return false unless work.is_a?(Proc) && work.source_location.nil? && !work.lambda?

      work.instance_variable_defined?(:@headway_spent) || !work.instance_variable_set(:@headway_spent, true)
    end

    # A scheduler that keeps its pool where {Hook} looks, as Async does, gets the hook itself.
    def adopt
      @scheduler = Fiber.scheduler
      @scheduler.singleton_class.prepend(Hook) if @scheduler && @scheduler.instance_variable_get(:@worker_pool).equal?(self)
    end

    # A queue that is closed wakes all at once that wait for a place, and the VM goes from one to the next through the fibers' stacks: it
    # crashes when a scheduler's unblock lets the next one leave meanwhile. For one more place it wakes one.
    def make_room = locked { @pending.num_waiting.times { @pending.max += 1 } }

    def stays_here? = OffloadPool.worker? || (Fiber.scheduler && Fiber.current_scheduler.nil?)

    def closed_error = ClosedError.new("this pool is closed: make a new one")

    def start
      @pid = Process.pid
      @lock = Mutex.new
      @threads = {}.compare_by_identity # thread => the job it runs
      @pending = Thread::SizedQueue.new(room)
      @line = Line.new
      @vacancies = Vacancies.new
      @light = @lined_up = 0
      @light_since = 0.0
      most = [@queue + @workers, MOST].min
      @costs = Native.offload_costs(Settings::OFFLOADS.index(@mode), @mode == :adaptive ? HandOver.ns : 0, most, @crew)
      @inline = 0 # those the native part did not choose
      @counts = { ran: 0, withdrawn: 0, cancelled: 0, cancelled_but_ran: 0, late: 0, full: 0, busy: 0.0 }
    end

    # Work of the VM asks for the hook again on a fiber that is not blocking.
    def inline(work)
      @inline += 1
      Fiber.blocking { work.call }
    end

    # A block, where it was written.
    def here
      @inline += 1
      yield
    end

    # @return [Boolean] whether a signal's handler runs, where nobody may wait and no lock be taken
    def trap?
      @lock.synchronize { false }
    rescue ThreadError
      true
    end

    # In a signal's handler without the lock: what it protects is then as it happens to be.
    def locked(&block) = trap? ? yield : @lock.synchronize(&block)

    # Of an exception from a worker: where it was raised there, then who waited for it here. One that is raised again and again keeps
    # its first backtrace, and one that was given a backtrace that.
    def with_caller(error)
      backtrace = error.backtrace
      fresh = backtrace && error.backtrace_locations&.size == backtrace.size
      error.set_backtrace(backtrace + caller(2)) if fresh && !error.frozen?
      error
    end

    # In pieces: who is woken for a free place and interrupted just then takes the wake-up along, and nobody else is told of it.
    def wait_for_ticket(job, timeout)
      ends = timeout && (now + timeout)
      ticket = Ticket.new(job)
      begin
        left = ends && [ends - now, 0].max
        vacant = vacant_ticket(job) and return vacant
      end until (placed = @pending.push(ticket, timeout: [left, LOOK_AGAIN].compact.min)) || left&.zero?
      ticket if placed
    end

    # No thread could be made, and none is there: the job runs where it is, whatever the rule.
    def take_back(job)
      call_ticket(@pending.pop(true)) if job.withdraw # else a worker came after all, and has taken both
    rescue ThreadError
      nil # another one that was in the same need took it; whoever gets a thread after all takes what is in the line
    end

    def ticket_at_once(job)
      @pending.push(ticket = Ticket.new(job), true)
      ticket
    rescue ThreadError
      vacant = vacant_ticket(job) and return vacant
      @lock.synchronize { @counts[:full] += 1 }
      raise FullError, "all workers are busy and the queue of #{@queue} is full" if @full == :raise
    end

    def vacant_ticket(job) = @lock.synchronize { @vacancies.take(job) }

    def unwanted(job)
      @counts[:late] += 1 if job.late? && job.ended?
      return if job.late?

      @counts[job.ended? ? :cancelled_but_ran : :cancelled] += 1
    end
  end
end
