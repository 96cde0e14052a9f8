# frozen_string_literal: true

module Headway
  module Bench
    class Serving
      # What Headway costs a server whose requests do nothing at all, or next to nothing, as fast as it can answer them.
      class Trivial < Experiment
        PURPOSE = "requests that do next to nothing, at saturation: what Headway costs"
        DEFAULTS = { "threads" => 5, "workers" => 1, "saturation_s" => 20, "connections" => 10, "work_us" => 0 }.freeze
        FIGURES = [
          Figure.new(key: "requests_per_s", title: "Requests a second", unit: "/s", better: :higher),
          Figure.new(key: "cpu_us", title: "CPU time of the server for each", unit: "µs"),
          Figure.new(key: "p99_us", title: "Time of a request, p99", unit: "µs", scale: :log),
          Figure.new(key: "p999_us", title: "p99.9", unit: "µs", scale: :log)
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

        # Of a turn (see {Turns}).
        TURN_S = 1
        private_constant :TURN_S

        # A server and what CPU time its requests take. That tells more than the rate where other programs run beside: Headway's own
        # threads are in it, waiting for others isn't.
        Metered = Struct.new(:server) do
          def load(...)
            before = server.cpu_s
            server.load(...).tap { _1["cpu_s"] = server.cpu_s - before }
          end
        end
        private_constant :Metered

        def initialize(settings = {})
          super
          @pairs = Pairs.new
        end

        def prepare(interpreter)
          config["rounds_per_ms"] = config["work_us"].zero? ? 1 : Serving.rounds_per_ms(interpreter)
          yield
        end

        def side_by_side? = true

        def measure_together(arms, _cell)
          answers = Turns.side_by_side(arms, method(:with_server)) { |servers| take_turns(servers) }
          @pairs.add(answers)
          arms.to_h { |arm| [arm.name, answers.key?(arm) ? figures_of(answers[arm]) : FIGURES.to_h { |figure| [figure.key, nil] }] }
        end

        # @return [Hash] what each arm's throughput is against stock's in the turn beside it
        def more(_arms) = { Serving::SATURATION => @pairs.ratios }

        def findings(result)
          result[Serving::SATURATION].map do |arm, ratio|
            cpu = result.dig("ratios", arm, "cpu_us")
            "#{arm}: #{Pairs.sentence(ratio)}, #{Kernel.format("%.3f", cpu)} × its CPU time for each request."
          end
        end

        private

        def take_turns(servers)
          turns, seconds = Turns.divide(config["saturation_s"], TURN_S)
          Turns.new(servers, turns, seed: 1).call(limit_s: seconds + 60) do
            { paths: { "/trivial" => 1.0 }, keep: true, connections: config["connections"], seconds: }
          end
        end

        def with_server(arm)
          settings = { **Serving::DEFAULTS, **config, "workers" => 1, "setup" => MIDDLEWARES[arm.name] }
          flags = ["puma", *OTHERS[arm.name]].flat_map { |gem| Gems.flags(gem) }
          Puma.run(arm, settings.compact, flags:) { |puma| yield Metered.new(puma) }
        end

        def figures_of(answers)
          times = answers.flat_map { _1["all_times"] }
          { "requests_per_s" => Turns.rate(answers), "cpu_us" => answers.sum { _1["cpu_s"] } / answers.sum { _1["requests"] } * 1e6,
            "p99_us" => Statistics.quantile(times, 0.99) * 1e6, "p999_us" => Statistics.quantile(times, 0.999) * 1e6 }
        end
      end
    end
  end
end
