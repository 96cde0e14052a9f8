# frozen_string_literal: true

require "tmpdir"

module Headway
  module Bench
    class Serving
      # The same with the example application, examples/rails_shop: an item's page as JSON beside the catalogue, drawn in Ruby. With
      # Headway it has all that the Railtie adds; without, nothing of it is loaded.
      class Shop < Serving
        PURPOSE = "requests to a Rails application, open loop: light ones beside heavy ones"
        PATHS = { "light" => "/items/7.json", "heavy" => "/catalogue.png" }.freeze
        DEFAULTS = Serving::DEFAULTS.slice("threads", "workers", "loads", "requests", "saturation_s", "heavy_share").freeze
        FOLDER = File.expand_path("../../../../examples/rails_shop", __dir__)
        # What the benchmark asks the server about itself stays as it is.
        SETUP = <<~RUBY
          lambda do |questions|
            require #{File.join(FOLDER, "config/environment").dump}
            ->(env) { (%w[/policy /cpu].include?(env["PATH_INFO"]) ? questions : Rails.application).call(env) }
          end
        RUBY
        private_constant :FOLDER, :SETUP

        def paths = PATHS

        private

        def settings = { **Serving::DEFAULTS, **super, "setup" => SETUP }

        # Rails takes its gems from the bundle.
        def with_server(arm, &)
          Dir.mktmpdir("headway-shop") do |folder|
            env = { "RAILS_ENV" => "production", "SHOP_DATA" => folder, "HEADWAY" => arm.headway ? nil : "0" }
            Puma.run(arm, settings, env:, flags: ["-rbundler/setup"], &)
          end
        end
      end
    end
  end
end
