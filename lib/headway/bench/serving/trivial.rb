# frozen_string_literal: true

module Headway
  module Bench
    class Serving
      # What Headway costs a server whose requests do nothing at all, as fast as it can answer them.
      class Trivial < Experiment
        PURPOSE = "a route that does nothing, at saturation: what Headway costs"
        DEFAULTS = { "threads" => 5, "workers" => 1, "seconds" => 5, "connections" => 10 }.freeze
        FIGURES = [Figure.new(key: "requests_per_s", title: "Requests a second", unit: "/s", better: :higher)].freeze
        # With the middleware and what counts requests for metrics.
        WHOLE = "headway-rack"
        SETUP = '->(app) { require "headway/rack"; require "headway/metrics"; Headway::Rack.new(app) }'
        private_constant :SETUP

        # @return [Array<Arm>]
        def self.arms(interpreter)
          whole = Arm.build("headway", interpreter).with(name: WHOLE) if File.file?(File.expand_path("../../rack.rb", __dir__))
          [Arm.build("stock", interpreter), Arm.build("headway", interpreter), whole].compact
        end

        def measure(arm, _cell)
          settings = { **Serving::DEFAULTS, **config, "rounds_per_ms" => 1, "setup" => (SETUP if arm.name == WHOLE) }
          Puma.run(arm, settings.compact) do |puma|
            puma.load({ paths: { "/trivial" => 1.0 }, seed: 1, keep: true, connections: config["connections"],
                        seconds: config["seconds"] }, limit_s: config["seconds"] + 60)
          end
        end

        # Runs of the arms alternate, so those of the same round are pairs.
        def findings(result)
          result["ratios"].map do |arm, ratios|
            "#{arm}: #{Kernel.format("%.3f", ratios["requests_per_s"])} × the requests of stock (medians)."
          end
        end
      end
    end
  end
end
