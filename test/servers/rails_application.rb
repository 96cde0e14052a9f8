# frozen_string_literal: true

module Harness
  # The text of a Rails application called Shop, as small as one can be.
  module RailsApplication
    # @param railties [Array<String>] such as "action_controller"
    # @param body [String] of its class
    # @return [String]
    def self.text(*railties, body)
      <<~RUBY
        require "logger"
        require "rails"
        #{railties.map { |name| "require \"#{name}/railtie\"" }.join("\n")}
        require "headway"

        class Shop < Rails::Application
          config.load_defaults 7.1
          config.root = __dir__
          config.eager_load = false
          config.secret_key_base = "x" * 64
          config.hosts.clear
          config.logger = Logger.new($stdout)
          #{body}
        end
      RUBY
    end
  end
end
