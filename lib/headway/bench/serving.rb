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
      PERCENTS = [50, 95, 99].freeze
      FIGURES = [
        *PATHS.keys.flat_map do |kind|
          PERCENTS.map do |percent|
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

      # Places for objects of each size that servers have at the least: half as many again as they fill (programs/heap.rb). How many Ruby
      # makes otherwise is chance, a few objects more or less at its start decide it, and one server collected garbage two or three times
      # as often as another, for 10 % of the CPU time.
      HEAP = [600_000, 150_000, 75_000, 15_000, 2_000].each_with_index.to_h do |places, size|
        ["RUBY_GC_HEAP_#{size}_INIT_SLOTS", places.to_s]
      end.freeze

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

      # @return [Float] rounds of what the servers' programs compute that this machine does in a millisecond
      def self.rounds_per_ms(interpreter)
        Child.run([*interpreter.command, "-e", CALIBRATION], env: Arm.environment).fetch("rounds_per_ms")
      end

      # Of a turn (see {Turns}), which begins with an empty server, its garbage {Swept}: at 85 % of a server's capacity queues would go on
      # growing for a minute, but in turns of a minute the machine's swings are more than what the arms differ by.
      TURN_S = 5
      SATURATED_TURN_S = 2
      private_constant :TURN_S, :SATURATED_TURN_S

      def initialize(settings = {})
        super
        @turns = 0
        @saturated = Pairs.new
      end

      # Finds out how fast the machine is and what stock Puma can take at most; loads are parts of that.
      def prepare(interpreter)
        config["rounds_per_ms"] = Serving.rounds_per_ms(interpreter)
        stock = Arm.build("stock", interpreter)
        answers = saturate([stock]).fetch(stock) { raise Error, "what stock can take at most could not be measured" }
        config["capacity_per_s"] = Turns.rate(answers).round(2)
        yield
      end

      def cells = config["loads"].map { "#{_1} %" } + [SATURATION]

      def cell_title = "load"

      # @return [Hash{String => String}] of light and heavy requests
      def paths = PATHS

      def side_by_side? = true

      def measure_together(arms, cell)
        answers = cell == SATURATION ? saturate(arms.reject { _1.name == ALONE }) : under_load(arms, cell.to_f / 100)
        @saturated.add(answers) if cell == SATURATION
        arms.to_h do |arm|
          found = answers.key?(arm) ? figures_of(answers[arm]) : {}
          [arm.name, self.class.figures.to_h { |figure| [figure.key, found[figure.key]] }]
        end
      end

      # @return [Hash] what each arm's throughput is against stock's in the turn beside it
      def more(_arms) = { SATURATION => @saturated.ratios }

      def findings(result)
        arms = result["arms"]
        (arms.keys - ["stock", ALONE]).flat_map do |arm|
          cells.filter_map { |cell| cell == SATURATION ? throughput(result[SATURATION], arm) : finding(arms, arm, cell) }
        end
      end

      private

      def with_server(arm, &) = Puma.run(arm, settings, &)

      def settings = config.slice(*DEFAULTS.keys, "rounds_per_ms")

      def mix = { paths: { paths["light"] => 1 - config["heavy_share"], paths["heavy"] => config["heavy_share"] } }

      def saturate(arms)
        turns, seconds = Turns.divide(config["saturation_s"], SATURATED_TURN_S)
        connections = 2 * config["threads"] * config["workers"]
        by_turns(arms, turns, limit_s: (2 * seconds) + 60) { { **mix, connections:, seconds: } }
      end

      def under_load(arms, load)
        rate = config["capacity_per_s"] * load
        turns, requests = Turns.divide(config["requests"], rate * TURN_S)
        requests = requests.ceil
        by_turns(arms, turns, limit_s: (2 * requests / rate) + 120) do |arm|
          { **mix, rate:, requests:, only: ([paths["light"]] if arm.name == ALONE) }.compact
        end
      end

      def by_turns(arms, count, limit_s:, &)
        seed = @turns + 1
        @turns += count
        Turns.side_by_side(arms, method(:with_server)) do |servers|
          Turns.new(servers.transform_values { Swept.new(_1) }, count, seed:).call(limit_s:, &)
        end
      end

      def figures_of(answers)
        times = paths.flat_map do |kind, path|
          seconds = answers.flat_map { _1.dig("times", path) || [] }
          PERCENTS.map { |percent| ["#{kind}_p#{percent}_us", micros(seconds, percent)] }
        end
        { **times.to_h, "requests_per_s" => Turns.rate(answers), "late_p99_us" => micros(answers.flat_map { _1["late"] || [] }, 99) }
      end

      def micros(seconds, percent)
        (Statistics.quantile(seconds, percent / 100.0) * 1e6).round(1) if seconds.any?
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

      def throughput(ratios, arm) = ("#{arm} at saturation: #{Pairs.sentence(ratios[arm])}." if ratios.key?(arm))

      def ratio(number, base) = Figure.compact(number / base.to_f)
    end
  end
end

require_relative "serving/gems"
require_relative "serving/served_arm"
require_relative "serving/turns"
require_relative "serving/swept"
require_relative "serving/pairs"
require_relative "serving/puma"
require_relative "serving/shop"
require_relative "serving/jobs"
require_relative "serving/trivial"
