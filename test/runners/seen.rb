# frozen_string_literal: true

require "json"

# What every runner's jobs do: wait, compute, and write down where they ran.
module Seen
  # Where there is no Active Job, a job says what it is, as docs/servers.md shows.
  def self.work_as(name, number)
    return work(number) unless defined?(Headway::Work)

    begin
      job = Headway::Work.start(:job, name)
      work(number)
    ensure
      job.finish($!)
    end
  end

  def self.work(number)
    sleep 0.01
    100_000.times { |each| each.to_s }
    policy = Headway.policy if defined?(Headway.started?) && Headway.started?
    work = Headway::Work.current&.name if policy
    line = JSON.generate(number: number, policy: policy, work: work, pid: Process.pid, thread: Thread.current.native_thread_id)
    File.write(ENV.fetch("SEEN"), "#{line}\n", mode: "a")
  end
end
