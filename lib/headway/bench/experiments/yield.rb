# frozen_string_literal: true

module Headway
  module Bench
    # The gist's estimate of how much work yields, for work that never does, work that always does, and what lies between.
    class Yield < Experiment
      PURPOSE = "how much work yields, by the wall clock as in the gist, and by its events"
      WORKS = ["2+2", "25% sleep", "50% sleep", "75% sleep", "sleep(0.001)", "deflate"].freeze
      DEFAULTS = { "concurrency" => 2, "seconds" => 1.5 }.freeze
      FIGURES = [
        Figure.new(key: "yield_pct", title: "Yield by the wall clock, as the gist has it", unit: "%", better: :neither),
        Figure.new(key: "event_yield_pct", title: "Yield by the events of one thread", unit: "%", better: :neither),
        Figure.new(key: "concurrent_s", title: "Time of several threads"),
        Figure.new(key: "ideal_s", title: "Had nothing but their number counted")
      ].freeze
      LIB = File.expand_path("../../..", __dir__)
      private_constant :LIB

      def self.options(parser, settings)
        parser.on("--concurrency N", Options::Count, "threads (default 2)") { |count| settings["concurrency"] = count }
        parser.on("--seconds S", Options::Positive, "length of each measurement (default 1.5)") { |number| settings["seconds"] = number }
      end

      def initialize(settings = {})
        super
        raise UsageError, "--concurrency is 1: give 2 or more, to be compared with 1" if config["concurrency"] < 2
      end

      def cells = WORKS

      def cell_title = "work"

      def measure(arm, cell)
        lib = LIB if arm.interpreter.headway_trouble.nil?
        run_program("yield", arm, config.merge("work" => cell, "lib" => lib), limit_s: 60 + (20 * config["seconds"]))
      end
    end
  end
end
