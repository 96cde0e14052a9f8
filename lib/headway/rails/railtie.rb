# frozen_string_literal: true

module Headway
  module Rails
    # Joins Rails' boot.
    class Railtie < ::Rails::Railtie
      config.headway = ActiveSupport::OrderedOptions.new

      initializer "headway.subscribe" do
        Rails.subscribe
      end

      # The application's initializers have their say first.
      initializer "headway.start", after: :load_config_initializers do |app|
        Rails.start(app)
      end
    end
  end
end
