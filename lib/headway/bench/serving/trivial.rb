# frozen_string_literal: true

module Headway
  module Bench
    class Serving
      # What Headway costs a server whose requests do nothing at all, as fast as it can answer them.
      class Trivial < Experiment
        PURPOSE = "a route that does nothing, at saturation: what Headway costs"
        DEFAULTS = { "threads" => 5, "workers" => 1, "seconds" => 5, "connections" => 10 }.freeze
        FIGURES = [
          Figure.new(key: "requests_per_s", title: "Requests a second", unit: "/s", better: :higher),
          Figure.new(key: "cpu_us", title: "CPU time of the server for each", unit: "µs")
        ].freeze
        # With the middleware and what counts requests for metrics.
        WHOLE = "headway-rack"
        SETUP = '->(app) { require "headway/rack"; require "headway/metrics"; Headway::Rack.new(app) }'
        private_constant :SETUP

        # @return [Array<Arm>]
        def self.arms(interpreter)
          whole = Arm.build("headway", interpreter).with(name: WHOLE) if File.file?(File.expand_path("../../rack.rb", __dir__))
          [Arm.build("stock", interpreter), Arm.build("headway", interpreter), whole].compact
        end

        # CPU time tells more than the rate where other programs run beside: Headway's own threads are in it, waiting for others isn't.
        def measure(arm, _cell)
          settings = { **Serving::DEFAULTS, **config, "workers" => 1, "rounds_per_ms" => 1, "setup" => (SETUP if arm.name == WHOLE) }
          load = { paths: { "/trivial" => 1.0 }, seed: 1, keep: true, connections: config["connections"], seconds: config["seconds"] }
          Puma.run(arm, settings.compact) do |puma|
            before = puma.cpu_s
            answer = puma.load(load, limit_s: config["seconds"] + 60)
            { "requests_per_s" => answer["requests_per_s"], "cpu_us" => (puma.cpu_s - before) / answer["requests"] * 1e6 }
          end
        end

        def findings(result)
          result["ratios"].map do |arm, ratios|
            Kernel.format("%s: %.3f × the requests of stock, %.3f × its CPU time for each (medians).",
                          arm, *ratios.values_at("requests_per_s", "cpu_us"))
          end
        end
      end
    end
  end
end
