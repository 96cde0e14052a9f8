# frozen_string_literal: true

require "tempfile"

module Headway
  module Bench
    # Feature #20876's program: fibers that compress, beside one that ticks every millisecond; and what offload costs operations
    # that are too short for it.
    class Offload < Experiment
      PURPOSE = "fibers that compress beside one that ticks (Feature #20876)"
      DEFAULTS = { "fibers" => 6, "mib" => 8, "small" => true, "echo" => false, "rounds" => 15 }.freeze
      FULL = { "fibers" => 10, "mib" => 100 }.freeze
      FIGURES = [
        Figure.new(key: "total_s", title: "Total time"),
        Figure.new(key: "loop_gap_p99_ms", title: "Time between ticks, p99", unit: "ms", scale: :log),
        Figure.new(key: "loop_gap_max_ms", title: "Time between ticks, longest", unit: "ms", scale: :log)
      ].freeze
      # A MiB takes some 50 ms.
      SECONDS_PER_MIB = 0.5

      class << self
        def arms = OffloadArm

        def base = "no_hook"

        def options(parser, settings)
          parser.on("--fibers N", Options::Count, "fibers that compress (default 6)") { settings["fibers"] = _1 }
          parser.on("--mib N", Options::Count, "MiB each compresses (default 8)") { settings["mib"] = _1 }
          parser.on("--full", "as in the feature's document: 10 × 100 MiB") { settings.update(FULL) }
          parser.on("--[no-]small", "measure short operations too (default)") { settings["small"] = _1 }
          parser.on("--echo", "requests to an echo server in the loop, too, against Async's own loop") { settings["echo"] = true }
          parser.on("--rounds N", Options::Count, "of the short operations and the echo (default 15)") { settings["rounds"] = _1 }
        end
      end

      # A file that the programs read: they are killed when something is wrong, and would leave their own behind.
      def prepare(_interpreter)
        Tempfile.create("headway-bench", binmode: true) do |file|
          file.write(Random.bytes(20_000))
          file.flush
          @twenty_kb = file.path
          yield
        end
      end

      def measure(arm, _cell)
        limit_s = 120 + (config["fibers"] * config["mib"] * SECONDS_PER_MIB)
        figures = run_program("offload", arm, config.merge("arm" => arm.name, "twenty_kb" => @twenty_kb), limit_s:)
        echoes?(arm) ? figures.merge("echo" => run_program("offload_echo", arm, config.merge("arm" => arm.name), limit_s:)) : figures
      end

      # Short operations: µs each, and their ratio to no hook under the same scheduler, measured in turns within one process. And
      # requests to an echo server, against Async's own loop (more is better), and with Headway's scheduler of threads against without.
      def more(arms)
        measured = arms.transform_values { |figures| figures.delete("small") }.compact
        operations = measured.empty? ? [] : measured.values.first.keys
        small = operations.to_h { |operation| [operation, measured.transform_values { |table| row(table[operation]) }] }
        { "small" => small, "echo" => arms.transform_values { |figures| figures.delete("echo") }.compact }.reject { |_, table| table.empty? }
      end

      def findings(result)
        lines = result["arms"].except("no_hook").filter_map do |arm, figures|
          total = result.dig("ratios", arm, "total_s") or next
          gap = Figure.compact(figures["loop_gap_p99_ms"]["median"])
          "#{arm}: #{Kernel.format("%.2f", total)} of the time without the hook, and 99 % of the ticks within #{gap} ms."
        end
        lines + small_table(result) + echo_table(result)
      end

      private

      def row(figures) = { "us" => figures["us"], "ratio" => figures["ratio"] }

      def small_table(result)
        small = result["small"] or return []
        arms = small.values.first.keys
        lines = small.map { |operation, row| [operation, *arms.map { |arm| cell(row[arm]) }] }
        ["", "Short operations: µs, and the ratio to no hook", Table.layout([["", *arms], *lines])]
      end

      # Async's loop is what they are compared with, so without it there is nothing to say; nor of pools that no request needs.
      def echoes?(arm)
        config["echo"] && %w[no_hook headway async async_headway].include?(arm.name) && Gem::Specification.find_all_by_name("async").any?
      end

      def echo_table(result)
        lines = result.fetch("echo", {}).map { |arm, figures| [arm, *figures.values.map { |figure| Figure.compact(figure["median"]) }] }
        return [] if lines.empty?

        ["", "Echo: requests/s, CPU time of the loop for each in µs, rate against Async's own loop, and with Headway's scheduler against without",
         Table.layout([["", "requests/s", "µs", "to Async", "scheduler"], *lines])]
      end

      def cell(figures) = "#{Figure.compact(figures["us"]["median"])} (#{Kernel.format("%.2f", figures["ratio"]["median"])})"
    end
  end
end
