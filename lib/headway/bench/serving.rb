# frozen_string_literal: true

require "socket"
require_relative "../bench"

module Headway
  module Bench
    # Puma under load: most requests are light and mostly wait, some are heavy and compute. What do the light ones wait for?
    # This is `bin/bench-server`.
    class Serving < Experiment
      PURPOSE = "requests to Puma, open loop: light ones beside heavy ones"
      PATHS = { "light" => "/light", "heavy" => "/heavy" }.freeze
      DEFAULTS = { "threads" => 10, "workers" => 1, "loads" => [30, 50, 70, 85], "requests" => 10_000, "saturation_s" => 20,
                   "heavy_share" => 0.1, "heavy_ms" => 150, "light_ms" => 5, "light_waits" => 5, "light_wait_ms" => 4 }.freeze
      FIGURES = [
        *PATHS.keys.flat_map do |kind|
          [50, 95, 99].map do |percent|
            Figure.new(key: "#{kind}_p#{percent}_us", title: "#{kind.capitalize} requests, p#{percent}", unit: "µs", scale: :log)
          end
        end,
        Figure.new(key: "requests_per_s", title: "Requests a second", unit: "/s", better: :higher),
        Figure.new(key: "late_p99_us", title: "Lateness of the load generator itself, p99", unit: "µs", scale: :log, better: :neither)
      ].freeze
      SATURATION = "saturation"
      # The arm whose heavy requests are left out: what light ones take when nothing is in their way.
      ALONE = "light alone"

      # @return [Arm]
      def self.alone(interpreter) = Arm.new(name: ALONE, interpreter:)

      # Finds out how fast the machine is and what stock Puma can take at most; loads are parts of that.
      def prepare(interpreter)
        config["rounds_per_ms"] = Child.run([*interpreter.command, "-e", CALIBRATION], env: Arm.environment).fetch("rounds_per_ms")
        config["capacity_per_s"] = saturate(Arm.build("stock", interpreter)).round(2)
        yield
      end

      def cells = config["loads"].map { "#{_1} %" } + [SATURATION]

      def cell_title = "load"

      # @return [Hash{String => String}] of light and heavy requests
      def paths = PATHS

      def measure(arm, cell)
        found = if cell != SATURATION then under_load(arm, cell)
                elsif arm.name != ALONE then { "requests_per_s" => saturate(arm) }
                else {}
                end
        self.class.figures.to_h { |figure| [figure.key, found[figure.key]] }
      end

      def findings(result)
        arms = result["arms"]
        (arms.keys - ["stock", ALONE]).flat_map do |arm|
          cells.filter_map { |cell| cell == SATURATION ? throughput(arms, arm) : finding(arms, arm, cell) }
        end
      end

      private

      CALIBRATION = <<~RUBY
        require "json"
        rounds = ->(count) { count.times { Array.new(20) { |index| "item \#{index}" }.join(",") } }
        rates = Array.new(7) do
          start = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
          rounds.call(20_000)
          20_000 / (Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - start) / 1000
        end
        puts JSON.generate(rounds_per_ms: rates.sort[3].round(2))
      RUBY
      private_constant :CALIBRATION

      def with_server(arm, &) = Puma.run(arm, settings, &)

      def settings = config.slice(*DEFAULTS.keys, "rounds_per_ms")

      def mix = { paths: { paths["light"] => 1 - config["heavy_share"], paths["heavy"] => config["heavy_share"] }, seed: 1 }

      def saturate(arm)
        seconds = config["saturation_s"]
        connections = 2 * config["threads"] * config["workers"]
        with_server(arm) { |server| server.load({ **mix, connections:, seconds: }, limit_s: (2 * seconds) + 60) }.fetch("requests_per_s")
      end

      # A server that falls behind must not cost us the hours before and after it.
      def under_load(arm, cell)
        figures_of(open_loop(arm, cell.to_f / 100))
      rescue Error => error
        warn "#{arm.name} at #{cell} is left out: #{error.message}"
        {}
      end

      def open_loop(arm, load)
        rate = config["capacity_per_s"] * load
        only = [paths["light"]] if arm.name == ALONE
        settings = { **mix, rate:, requests: config["requests"], only: }.compact
        with_server(arm) { |server| server.load(settings, limit_s: (2 * config["requests"] / rate) + 120) }
      end

      def figures_of(answer)
        times = answer.fetch("times").flat_map do |path, values|
          values.except("n").map { |part, number| ["#{paths.key(path)}_#{part}", number] }
        end
        { **times.to_h, "requests_per_s" => answer["requests_per_s"], "late_p99_us" => answer["late_p99_us"] }
      end

      def finding(arms, arm, cell)
        light = ->(name) { arms.dig(name, cell, "light_p99_us", "median") }
        heavy = ->(name) { arms.dig(name, cell, "heavy_p99_us", "median") }
        return unless light[arm]

        parts = [
          ("#{ratio(light["stock"], light[arm])} × lower than stock" if light["stock"]),
          ("#{ratio(light[arm], light[ALONE])} × light requests alone" if light[ALONE]),
          ("heavy p99 #{ratio(heavy[arm], heavy["stock"])} × stock" if heavy["stock"] && heavy[arm])
        ].compact
        "#{arm} at #{cell}: light p99 #{Figure.duration(light[arm])}, #{parts.join(", ")}." if parts.any?
      end

      def throughput(arms, arm)
        own, stock = [arm, "stock"].map { arms.dig(_1, SATURATION, "requests_per_s", "median") }
        "#{arm} at saturation: #{Kernel.format("%.3f", own / stock)} × the throughput of stock." if own && stock
      end

      def ratio(number, base) = Figure.compact(number / base.to_f)
    end
  end
end

require_relative "serving/gems"
require_relative "serving/puma"
require_relative "serving/shop"
require_relative "serving/jobs"
require_relative "serving/trivial"
