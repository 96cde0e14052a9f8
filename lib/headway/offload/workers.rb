# frozen_string_literal: true

module Headway
  class OffloadPool
    # The pool's threads: started when operations wait for one, ended by {#close}.
    module Workers
      # Workers are born with MASKED and keep it, but in a job and while they idle.
      MASKED = { Object => :never }.freeze
      IDLE = { Object => :on_blocking }.freeze
      private_constant :MASKED, :IDLE

      private

      def hire
        @lock.synchronize do
          return if @threads.size >= @workers

          # The mask is inherited; it must not be held across a switch of fibers, and nothing in here switches.
          Thread.handle_interrupt(MASKED) do
            @threads[thread = Thread.new { serve }] = nil
            thread.name = "headway offload"
          end
        end
      rescue ThreadError
        raise if @threads.empty?
      end

      def serve
        Thread.current.thread_variable_set(:headway_offload, true)
        Block.forget_storage # of the fiber that happened to need it
        while (job = Thread.handle_interrupt(IDLE) { @pending.pop })
          serve_one(job)
        end
      ensure
        @lock.synchronize { @threads.delete(Thread.current) }
        # One that is killed ends what is queued, as it may have been the last; a new one is only started with the next operation.
        while (job = @pending.empty? ? nil : @pending.pop(timeout: 0))
          serve_one(job)
        end
      end

      # Unless this worker was killed: it is none any more.
      def note(job)
        @threads[Thread.current] = job if @threads.key?(Thread.current)
      end

      # One for each that was queued; which is up to the line.
      def serve_one(queued)
        job = @line.next { @lock.synchronize { @counts[:withdrawn] += 1 } } || queued
        note(job)
        job.run
      ensure
        note(nil)
      end
    end
  end
end
