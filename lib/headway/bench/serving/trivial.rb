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
        # Middlewares, each alone: Headway's with what counts requests for metrics, and what users have that times or counts requests.
        WHOLE = "headway-rack"
        MIDDLEWARES = {
          WHOLE => '->(app) { require "headway/rack"; require "headway/metrics"; Headway::Rack.new(app) }',
          "rack-runtime" => '->(app) { require "rack"; Rack::Runtime.new(app) }',
          "prometheus-client" => '->(app) { require "prometheus/middleware/collector"; Prometheus::Middleware::Collector.new(app) }'
        }.freeze
        OTHERS = { "rack-runtime" => "rack", "prometheus-client" => "prometheus-client" }.freeze
        private_constant :MIDDLEWARES, :OTHERS

        # @return [Array<Arm>] without those whose gem isn't there
        def self.arms(interpreter)
          stock, headway = %w[stock headway].map { |name| Arm.build(name, interpreter) }
          others = OTHERS.filter_map { |name, gem| stock.with(name:) if Gems.installed?(gem) }
          [stock, headway, headway.with(name: WHOLE), *others]
        end

        # CPU time tells more than the rate where other programs run beside: Headway's own threads are in it, waiting for others isn't.
        def measure(arm, _cell)
          settings = { **Serving::DEFAULTS, **config, "workers" => 1, "rounds_per_ms" => 1, "setup" => MIDDLEWARES[arm.name] }
          load = { paths: { "/trivial" => 1.0 }, seed: 1, keep: true, connections: config["connections"], seconds: config["seconds"] }
          flags = ["puma", *OTHERS[arm.name]].flat_map { |gem| Gems.flags(gem) }
          Puma.run(arm, settings.compact, flags:) do |puma|
            before = puma.cpu_s
            answer = puma.load(load, limit_s: config["seconds"] + 60)
            { "requests_per_s" => answer["counted"] / answer["seconds"], "cpu_us" => (puma.cpu_s - before) / answer["requests"] * 1e6 }
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
