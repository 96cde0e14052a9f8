# frozen_string_literal: true

module Headway
  class OffloadPool
    # The pool's threads: started when operations wait for one, ended by {#close}.
    module Workers
      # Workers are born with MASKED and keep it, but in a job and while they idle.
      MASKED = { Object => :never }.compare_by_identity.freeze # of such a mask the VM makes no copy
      IDLE = { Object => :on_blocking }.compare_by_identity.freeze
      # Seconds: work that was light so far and takes longer has nobody line up for it.
      LINING_UP = 0.005
      private_constant :MASKED, :IDLE, :LINING_UP

      private

      def hire
        @lock.synchronize do
          return if @threads.size >= @workers

          # The mask is inherited; it must not be held across a switch of fibers, and nothing in here switches. The thread waits for the
          # lock before it begins: it stands in the list by then.
          Thread.handle_interrupt(MASKED) do
            @threads[thread = Thread.new { serve }] = nil
            thread.name = "headway offload"
          end
        end
      rescue ThreadError # the system has no more threads for us
        nil
      end

      def serve
        @lock.synchronize { nil }
        forget_who_hired
        # A kill that a job's cleaning up replaced by an exception: no other one will reach this thread, and the process's end waits for it.
        nil while serve_next && Thread.current.status != "aborting"
      ensure
        @lock.synchronize { @threads.delete(Thread.current) }
        # One that is killed ends what is queued, as it may have been the last; a new one is only started with the next operation.
        while (job = queued_or_lined_up)
          work_from(job)
        end
      end

      # A method of its own, so that a worker that idles keeps nothing of the job before, whose result may be large.
      # @return [Boolean] false: the pool is closed, and there is no more
      def serve_next
        ticket = Thread.handle_interrupt(IDLE) { @pending.pop } or return false
        work_for(call_ticket(ticket))
        # Who was queued and who is in the line may differ: nobody idles while somebody is in it, but for light work that has its workers.
        while @pending.empty? && (job = left_over)
          work_from(job)
        end
        true
      end

      # The fiber that happened to need a worker: what it passes on to a new thread is no other caller's.
      def forget_who_hired
        Thread.current.thread_variable_set(:headway_offload, true)
        Thread.current.priority = 0
        ThreadGroup::Default.add(Thread.current) unless Thread.current.group&.enclosed?
        Block.forget_storage
      end

      # Other jobs may go first, but it goes on until somebody has taken the one it was woken for: no other worker will be woken for that.
      def work_for(queued)
        loop do
          work_from(next_for(queued))
          break unless queued.queued?
        end
      end

      # Unless this worker was killed: it is none any more.
      def note(job)
        @lock.synchronize do
          @threads[Thread.current] = job if @threads.key?(Thread.current)
          @pending.max = room unless @full == :wait # it would wake all who wait for a place, which close says why not to do
        end
      end

      # In the queue stand those who wait for a worker, and those for whom an idle one, perhaps a new one, has yet to come: nobody is refused
      # for these. Who may wait has a place as soon as that one comes.
      def room = @full == :wait ? @queue : [@queue + @workers - @threads.count { |_, job| job }, MOST].min

      # For each job that was queued one worker comes, and the line says which job it takes. But a job that has been queued and has yet
      # to join the line (its thread was switched away in between) is taken by the worker that came for it: had that taken another one,
      # nobody would come once it has joined.
      def next_for(queued)
        (next_in_line(queued) if queued.ticket) || queued
      end

      # @return [Job]
      def call_ticket(ticket) = @lock.synchronize { @vacancies.call(ticket) }

      def next_in_line(passed = nil) = @lock.synchronize { take_from_line(passed) }

      def left_over = @lock.synchronize { take_from_line if @light < @crew }

      def queued_or_lined_up
        ticket = @pending.pop(timeout: 0) unless @pending.empty?
        ticket ? next_for(call_ticket(ticket)) : next_in_line
      end

      # On to those that lined up for it.
      def work_from(job)
        while job
          work_on(job)
          job = job.light? ? go_on : nil
        end
      end

      def work_on(job)
        note(job)
        start_light if job.light?
        job.run
        over = true
      ensure
        note(nil)
        @lock.synchronize { @light -= 1 } if job.light? && !over
      end

      # Light work waits in the line for a worker that is at such work already, and nobody is woken for it.
      # @return [Boolean] false: no worker is, or not enough are
      def line_up(job)
        @lock.synchronize do
          next false if @closed || @light < @crew || now - @light_since > LINING_UP

          @line.join(job)
          @lined_up += 1
          true
        end
      end

      def start_light
        @lock.synchronize do
          @light += 1
          @light_since = now
        end
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      # After light work: the worker no longer counts as at it, and takes what has lined up, under one lock, so that no job lines up in
      # between, which nobody would come for. Where enough others are at light work, these take what has lined up.
      def go_on
        @lock.synchronize do
          @light -= 1
          take_lined_up if @light < @crew
        end
      end

      # @return [Job, nil] one from the line if anybody lined up and is still there
      def take_lined_up
        return unless @lined_up.positive?

        job = take_from_line
        job ? @lined_up -= 1 : @lined_up = 0
        job
      end

      # With the lock held. Who goes ahead leaves its place in the queue to whom it passed, for which a worker came that takes it instead,
      # or else to who comes next.
      def take_from_line(passed = nil)
        job = @line.next or return
        @vacancies.add(job.ticket)
        job.ticket = nil
        passed.ticket = @vacancies.take(passed) || passed.ticket if passed&.queued? && passed.ticket&.called
        job
      end
    end
  end
end
