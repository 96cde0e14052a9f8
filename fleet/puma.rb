# frozen_string_literal: true

preload_app!
require "headway"
before_worker_boot do |index|
  Headway::Metrics.worker = index
  Headway.start
  # Each worker of each machine a file of its own, of the last million events.
  Headway::Recorder.start(file: "#{ENV.fetch("TRACE_DIRECTORY")}/", mode: :flight)
end
