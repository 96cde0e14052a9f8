# frozen_string_literal: true

module Headway
  class OffloadPool
    # Whose turn it is among the jobs that wait: the newest's, until the oldest has waited for PATIENCE.
    #
    # A stream of operations on the same data (deflate's steps) is then done by few at a time and finds its data in the processor's
    # cache, where taking turns at each step would have it fetched from memory over and over: six such streams on two processors cost a
    # sixth more. And a short operation that comes in between need not wait for all of them.
    #
    # Every method is one that no other thread can come into: arrays' own are, under the GVL.
    class Line
      PATIENCE = 0.01 # seconds
      private_constant :PATIENCE

      def initialize
        @jobs = []
      end

      def join(job) = @jobs << job

      def leave(job) = @jobs.delete(job)

      # @return [Job, nil] that nobody gave up; nil: nobody waits
      def next
        while (job = oldest_is_patient? ? @jobs.pop : @jobs.shift)
          return job if job.queued?
        end
      end

      # @return [Array<Job>]
      def queued = @jobs.select(&:queued?)

      private

      def oldest_is_patient?
        oldest = @jobs.first
        oldest.nil? || oldest.age < PATIENCE
      end
    end
  end
end
