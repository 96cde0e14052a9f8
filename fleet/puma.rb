# frozen_string_literal: true

preload_app!
require "headway"
before_worker_boot do |index|
  Headway::Metrics.worker = index
  Headway.start
end
