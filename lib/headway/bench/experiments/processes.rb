# frozen_string_literal: true

module Headway
  module Bench
    # Arithmetic by W processes of N threads: what a GVL costs, and what processes give back.
    class Processes < Experiment
      PURPOSE = "arithmetic by several processes of several threads each"
      DEFAULTS = { "processes" => [1, 2], "threads" => [1, 2], "iterations" => 5_000_000 }.freeze
      FIGURES = [
        Figure.new(key: "wall_s", title: "Time"),
        Figure.new(key: "cpu_pct", title: "CPU used", unit: "%", better: :neither),
        Figure.new(key: "speedup", title: "Times as fast as one process with one thread", unit: "×", better: :higher)
      ].freeze

      def self.options(parser, settings)
        parser.on("--processes LIST", Options::Sizes, "numbers of processes (default 1,2)") { |counts| settings["processes"] = counts }
        parser.on("--threads LIST", Options::Sizes, "numbers of threads in each (default 1,2)") { |counts| settings["threads"] = counts }
        parser.on("--iterations N", Integer, "of all together (default 5000000)") { |count| settings["iterations"] = count }
      end

      def initialize(settings = {})
        super
        return if config["iterations"].positive?

        raise UsageError, "--iterations is #{config["iterations"]}: give a whole number from 1"
      end

      def cell_title = "processes × threads"

      def measure(arm, _cell)
        combinations = config["processes"].size * config["threads"].size
        run_program("processes", arm, config.merge("command" => arm.interpreter.command),
                    limit_s: (60 + (config["iterations"] / 200_000)) * (1 + combinations))
      end

      def findings(result)
        result["arms"].map do |arm, combinations|
          best, figures = combinations.max_by { |_, one| one["speedup"]["median"] }
          "#{arm}: #{best} is #{Figure.compact(figures["speedup"]["median"])} × as fast as 1×1."
        end
      end
    end
  end
end
