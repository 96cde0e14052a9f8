# frozen_string_literal: true

require "logger"
require "rails"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"
require "active_job/railtie"

# In an application's Gemfile: gem "headway". Here stock Ruby is one of the arms, and loads nothing of it.
require "headway" unless ENV["HEADWAY"] == "0"

# A small shop: see README.md.
module Shop
  # Where the database and what Puma writes go.
  DATA = ENV.fetch("SHOP_DATA") { File.expand_path("../tmp", __dir__) }

  class Application < Rails::Application
    config.load_defaults 7.1
    config.root = File.expand_path("..", __dir__)
    config.eager_load = true
    config.secret_key_base = "an example has no secrets, and must not be used where there are some"
    config.active_job.queue_adapter = :async
    config.logger = Logger.new($stdout)
    config.headway.server_timing = true if config.respond_to?(:headway)
    config.log_level = ENV.fetch("LOG_LEVEL", "warn")
  end
end
