# frozen_string_literal: true

module Headway
  module Bench
    # Feature #20861's program: a sleeping thread beside a computing one.
    class Quantum < Experiment
      PURPOSE = "a sleeping thread beside a computing one (Feature #20861)"
      DEFAULTS = { "iterations" => 100 }.freeze
      FIGURES = [
        Figure.new(key: "total_s", title: "Total time"),
        Figure.new(key: "waste_s", title: "Waste: total beyond the sleeps"),
        Figure.new(key: "io_waste_s", title: "I/O waste: sleeping thread, beyond its sleeps"),
        Figure.new(key: "cpu_s", title: "Time of the computing thread")
      ].freeze

      def self.arms = RivalArm

      def self.options(parser, settings)
        parser.on("--iterations N", Options::Count, "sleeps and computations (default 100)") do |count|
          settings["iterations"] = count
        end
      end

      # The length of a computation is found once, so that all arms do and expect the same.
      def prepare(interpreter)
        command = [*interpreter.command, Bench.program("quantum"), JSON.generate(calibrate: true)]
        config.update(Child.run(command, env: Arm.environment))
        yield
      end

      def measure(arm, _cell)
        expected_s = config["iterations"] * config["sleep_s"]
        run_program("quantum", arm, config, limit_s: 60 + (20 * expected_s))
      end

      def findings(result)
        stock = result["arms"]["stock"] or return []
        result["arms"].except("stock").map do |arm, figures|
          waste, stock_waste = [figures, stock].map { _1["io_waste_s"]["median"] }
          cpu = Kernel.format("%.2f", result["ratios"][arm]["cpu_s"])
          "#{arm}: #{Figure.compact(waste)} s of I/O waste where stock has #{Figure.compact(stock_waste)} s; " \
            "the computing thread takes #{cpu} of stock's time."
        end
      end
    end
  end
end
