# frozen_string_literal: true

require_relative "../integrations/since"

module Headway
  module Rails
    # In front of ActiveJob::Base: makes a {Work} of each job, whatever runs it, unless that has made one itself.
    #
    # No subscriber to perform.active_job: nobody tells one of the end when another one's start raises, or when a timeout strikes among
    # them. The job would be what its thread is at for good, and hide all later ones.
    module ActiveJobs
      # Since it was due. Rails tells times as text, as a number and as a Time, in one version or another.
      #
      # @param job [ActiveJob::Base]
      # @return [Float, nil] seconds; nil: it was in no queue
      def self.queued(job)
        due = [job.enqueued_at, job.scheduled_at].compact.map { |at| (at.is_a?(String) ? Time.iso8601(at) : at).to_f }.max
        due && Integrations::Since.seconds(due)
      end

      # @return what the job returns
      def perform_now
        work = nil
        Integrations::Guard.masked("Headway's account of jobs") do
          next if Work.current&.kind == :job || Work.left_out? || !Headway.started?

          work = Work.start(:job, self.class.name)
          work.queue = queue_name
          work.queued = ActiveJobs.queued(self)
        end
        super
      rescue Exception => error # passed on
        raise
      ensure
        work&.finish(error)
      end
    end
  end
end
