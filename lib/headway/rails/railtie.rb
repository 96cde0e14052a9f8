# frozen_string_literal: true

module Headway
  module Rails
    # Joins Rails' boot.
    class Railtie < ::Rails::Railtie
      config.headway = ActiveSupport::OrderedOptions.new

      initializer "headway.subscribe" do
        Rails.subscribe
      end

      # The application's initializers have their say first, and before these all gems': one that came `after:` them would have Rails
      # run them ahead of the gems that come after this one. So it is the application's own.
      ::Rails::Application.initializer("headway.start") { |app| Rails.start(app) }
    end
  end
end
