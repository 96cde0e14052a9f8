# frozen_string_literal: true

module Headway
  class OffloadPool
    # Raised inside an operation on a worker when nobody wants its result any more. Code that runs on the pool sees it in its ensure
    # and rescue clauses; the one who waits for it never does.
    class Cancelled < Exception; end

    # One piece of work, from the fiber that waits for it to the worker that runs it and back.
    class Job
      # While it runs a job, a worker is a thread like any other: a Timeout in the job works, a kill ends a job that blocks for ever.
      INTERRUPTIBLE = { Object => :immediate }.compare_by_identity.freeze
      # What came too late for the job; a kill is none and waits until the worker is idle.
      TOO_LATE = { Exception => :immediate }.compare_by_identity.freeze
      # Seconds: no scheduler's clock goes so far as to Float::INFINITY.
      LONGEST = 1_000_000
      private_constant :INTERRUPTIBLE, :TOO_LATE, :LONGEST

      # @return [:queued, :running, :ran, :withdrawn]
      attr_reader :state
      # @return [Exception, nil] what the work raised
      attr_reader :error
      # @return [Object] what the work returned
      attr_reader :value
      # @return [Integer, nil] nanoseconds a worker took, by the wall clock and of CPU time
      attr_reader :wall_ns, :cpu_ns
      # @return [Integer, nil] the place its operation was called from, as the native part knows it
      attr_reader :place

      # @return [Boolean] whether it only computes, and not for long
      def light? = @light

      # @return [Ticket, nil] its place in the queue, from when it has joined the line
      attr_accessor :ticket

      # @param pool [OffloadPool]
      # @param work [#call]
      # @param deadline [Numeric, nil] seconds from now
      # @param place [Integer, nil]
      # @param light [Boolean]
      def initialize(pool, work, deadline, place, light)
        @pool = pool
        @work = work
        @place = place
        @light = light
        @fiber = Fiber.current # its stack, in which the VM's work writes, lives as long as the job, whatever becomes of its scheduler
        @since = now
        @deadline = deadline && @since + [deadline, LONGEST].min
        @lock = Mutex.new
        @finished = Thread::Queue.new
        @state = :queued
        @done = @late = @interrupted = @told = @left = false
        @worker = @ticket = @value = @wall_ns = @cpu_ns = nil
        @error = WorkerError.new("the thread that ran this operation was killed")
      end

      # @return [Boolean] whether it waits for a worker
      def queued? = @state == :queued

      # @return [Float] seconds since it was made
      def age = now - @since

      # @return [Boolean] whether its deadline passed before it was done
      def late? = @late

      # @return [Boolean] whether a worker was told to stop running it
      def interrupted? = @interrupted

      # @return [Boolean] whether it has a result in spite of everything
      def ended? = @state == :ran && !@error.is_a?(WorkerError) && !cut_short?

      # Returns when a worker is done with it, or none can take it. Only an exception leaves it earlier; Native.offload_wait then calls
      # {cancel} until the job is left.
      def begin
        queued = @pool.enqueue(self, seconds_left)
        return @left = true if @done || (queued && @finished.pop(timeout: seconds_left))

        @late = queued || @pool.full == :wait # not by the clock: who waits may be woken a little early
        @late ? cancel : refuse
      end

      # Takes it from the queue, or interrupts it, and returns when it is done. May itself be interrupted and called again.
      def cancel
        unless withdraw { @pool.withdrawn(self) }
          interrupt
          @finished.pop until @done
        end
        @left = true
        take_wake_up
      end

      # It gets no place in the queue.
      def refuse
        @left = withdraw
      end

      # Marks it done if no worker has it. May be interrupted anywhere, and called again.
      # @yield the first time
      # @return [Boolean] whether it is one that no worker will run
      def withdraw
        @lock.synchronize do
          if @state == :queued
            @state = :withdrawn
            yield if block_given?
          end
          @done = true if @state == :withdrawn
          @state == :withdrawn
        end
      end

      # On a worker, which nothing interrupts but while it calls the work.
      # @return [Boolean] false when it was withdrawn
      def run
        return false unless take

        pid = Process.pid
        wall_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        cpu_ns = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
        begin
          call
        ensure # the work may have ended the thread
          @wall_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - wall_ns
          @cpu_ns = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) - cpu_ns
          release
        end
        Process.pid == pid ? true : end_child
      end

      # Once its caller has what came of it: a worker that idles may still have the job, in what is left of a stack.
      def forget
        @value = @error = nil
      end

      # In a forked child, where no worker is left that could run it or end it.
      def abandon
        @error = ForkError.new("the process forked while this operation waited or ran, and only the parent runs it")
        @state = :ran
        tell
      end

      private

      # Also by what cleaning up raised in its place, as zlib does (DataError). The VM's own cause: some classes have another.
      def cut_short?
        error = @error
        error = Exception.instance_method(:cause).bind_call(error) until error.nil? || error.is_a?(Cancelled)
        !error.nil?
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def seconds_left = @deadline && [@deadline - now, 0].max

      def take
        @lock.synchronize do
          return false unless @state == :queued

          @worker = Thread.current
          @state = :running
        end
      end

      def call
        @value = Thread.handle_interrupt(INTERRUPTIBLE) { @work.call }
        @error = nil
      rescue Exception => error
        @error = error
      end

      # The work forked without a block, and this is the child: nobody waits for the work here, and no other thread is there. It ends as
      # a thread's child does, with the work.
      def end_child
        @error ? raise(@error) : exit
      end

      # Nothing is raised any more once @worker is gone; what was raised too late for the work is still pending, and ends here.
      def release
        @lock.synchronize { @worker = nil }
        begin
          Thread.handle_interrupt(TOO_LATE) { nil }
        rescue Exception
          retry # it took one
        end
        Block.forget_storage if @work.is_a?(Block) # here nothing interrupts it
        @state = :ran
        @work = @fiber = nil
        @pool.ran(self)
        tell
      end

      def tell
        @done = true
        @finished << true
      ensure
        @told = true # whatever a scheduler makes of it
      end

      # Who is interrupted just as a worker wakes it leaves the wake-up behind, and under Async that would end its next wait, whatever it
      # is for: a sleep, or one for a descriptor, which is then taken for a timeout. So it waits for that wake-up, if there may be one.
      def take_wake_up
        return if @state == :withdrawn || @error.is_a?(ForkError) || Fiber.current_scheduler.nil?

        sleep 0.001 until @told
        sleep 0 unless @finished.empty?
      end

      def interrupt
        @lock.synchronize do
          return if @interrupted || @worker.nil?

          @interrupted = true
          @worker.raise(Cancelled)
        end
      end
    end
  end
end
