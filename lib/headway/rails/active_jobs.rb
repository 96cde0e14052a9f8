# frozen_string_literal: true

module Headway
  module Rails
    # Makes a {Work} of each job of Active Job, whatever runs it, unless that has made one itself.
    class ActiveJobs
      EVENTS = "perform.active_job"

      def start(_name, _id, payload)
        Integrations::Guard.masked("Headway's account of jobs") do
          next if Work.current&.kind == :job || Work.left_out? || !Headway.started?

          job = payload[:job]
          payload[:headway] = Work.start(:job, job.class.name)
          payload[:headway].queue = job.queue_name
        end
        started = true
      ensure
        payload[:headway]&.finish($!) unless started # what was raised meanwhile keeps it from being done, and us from being told
      end

      def finish(_name, _id, payload)
        payload[:headway]&.finish(payload[:exception_object])
      end
    end
  end
end
