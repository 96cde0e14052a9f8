# frozen_string_literal: true

module Headway
  module Bench
    # The article's request loop, beside more and more computing threads.
    class Fairness < Experiment
      PURPOSE = "a loop of HTTP requests beside computing threads"
      DEFAULTS = { "cpu_threads" => [0, 1, 4, 16], "server_ms" => 60, "seconds" => 5, "port" => 0 }.freeze
      FIGURES = [
        Figure.new(key: "requests_per_s", title: "Requests a second", unit: "/s", better: :higher),
        Figure.new(key: "wait_p50_us", title: "Wait for the GVL, p50", unit: "µs", scale: :log),
        Figure.new(key: "wait_p99_us", title: "Wait for the GVL, p99", unit: "µs", scale: :log),
        Figure.new(key: "wait_max_us", title: "Wait for the GVL, longest", unit: "µs", scale: :log),
        Figure.new(key: "cpu_iterations_per_s", title: "Iterations of all computing threads a second", unit: "/s",
                   better: :higher)
      ].freeze
      WAITS = FIGURES.map(&:key).grep(/\Await_/).freeze

      # Stock arms have no recorder. The policy observe adds one and schedules nothing, but its hooks would be at work
      # while the requests are counted; so waits and rates of these arms come from separate processes.
      WAIT_METHOD = "ready to running of the requesting thread, from Headway.stats; " \
                    "stock, timeslice10 and priority-3 in a second process each under the policy observe"

      class << self
        def arms = RivalArm

        def options(parser, settings)
          parser.on("--cpu-threads LIST", Options::Counts, "numbers of computing threads (default 0,1,4,16)") do |counts|
            settings["cpu_threads"] = counts
          end
          parser.on("--server-ms MS", Options::Positive, "time the server takes to answer (default 60)") do |number|
            settings["server_ms"] = number
          end
          parser.on("--seconds S", Options::Positive, "length of each measurement (default 5)") do |number|
            settings["seconds"] = number
          end
          parser.on("--port N", Options::Port, "port of the server (default: any that is free)") do |port|
            settings["port"] = port
          end
        end
      end

      def initialize(settings = {})
        super
        config["wait_method"] = WAIT_METHOD
      end

      def prepare(_interpreter)
        Server.run(delay_ms: config["server_ms"], port: config["port"]) do |port|
          config["port"] = port
          yield
        end
      end

      def cells = config["cpu_threads"].map(&:to_s)

      def cell_title = "CPU threads"

      def measure(arm, cell)
        figures = run_cell(arm, cell)
        figures = run_cell(arm.observed, cell).slice(*WAITS).merge(figures) if waits_apart?(arm)
        self.class.figures.to_h { |figure| [figure.key, figures[figure.key]] }
      end

      # How much of its rate an arm keeps when it has computing threads.
      def ratios(arms)
        arms.transform_values do |cells|
          alone = cells.dig("0", "requests_per_s", "median") or next {}
          cells.transform_values { |figures| { "requests_per_s_vs_0" => figures["requests_per_s"]["median"] / alone } }
        end
      end

      def findings(result)
        most = cells.max_by(&:to_i)
        result["ratios"].filter_map do |arm, counts|
          kept = counts.dig(most, "requests_per_s_vs_0") or next
          "#{arm}: with #{most} computing threads the request rate is #{Figure.compact(kept)} of that with none."
        end
      end

      private

      def waits_apart?(arm) = arm.headway.nil? && arm.interpreter.cruby? && arm.interpreter.headway_trouble.nil?

      def run_cell(arm, cell)
        settings = { port: config["port"], seconds: config["seconds"], cpu_threads: cell.to_i }
        run_program("fairness", arm, settings, limit_s: 60 + (3 * config["seconds"]) + (4 * cell.to_i))
      end
    end
  end
end
