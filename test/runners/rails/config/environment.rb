# frozen_string_literal: true

# A Rails application of nothing but jobs, for the runner that $RUNNER names.
require "logger"
require "rails"
require "active_record/railtie"
require "active_job/railtie"
require ENV.fetch("RUNNER")
require "headway" # whose Railtie makes works of jobs

class Runners < Rails::Application
  config.load_defaults 7.1
  config.root = ENV.fetch("APP_ROOT")
  config.eager_load = false
  config.secret_key_base = "x" * 64
  config.logger = Logger.new($stdout)
  config.log_level = :warn
  config.active_job.queue_adapter = ENV.fetch("RUNNER").to_sym
end
Runners.initialize!

class Label < ActiveJob::Base
  def perform(number) = Seen.work(number)
end

require_relative "../../seen"
