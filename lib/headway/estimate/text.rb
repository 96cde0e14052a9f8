# frozen_string_literal: true

require_relative "../bench/table"

module Headway
  module Estimate
    # A result for the terminal.
    class Text
      BUSY_PCT = 10
      # Of work that starts threads, or has a pool of them compute: its own events know nothing of the GVL that those need.
      OTHERS = "Other threads of this process computed for %d %% of that time. What they do for the work counts as waiting here, though it " \
               "needs the GVL, too: so nothing can be said of how many threads pay. Measure what they do, or give --measure."
      # What the wall clock found at best, as a part of what the events predict: with less, these don't know what holds threads back.
      CONTRADICTED = 0.7
      CONTRADICTION = "%d threads did %.1f times as much as one, not %.1f times as is predicted: what they wait for takes fewer of them " \
                      "at a time (a Mutex, a pool of connections), what they do gets slower beside others, or other programs had the cores. " \
                      "What counts is what --measure measures."
      private_constant :BUSY_PCT, :OTHERS, :CONTRADICTED, :CONTRADICTION

      # @param result [Hash] as it was printed as JSON
      def initialize(result)
        @result = result
      end

      # @return [String]
      def to_s
        return [yielded, "", call, OTHERS % others, *processes].join("\n") if others >= BUSY_PCT && !@result["measured"]

        contradicted = contradiction
        [*contradicted, yielded, "", call, *(knee unless contradicted), *busy, *(["", threads] unless contradicted && !@result["measured"]),
         *processes].join("\n")
      end

      private

      def yielded
        lines = [["yields", pct("event_yield_pct"), "by its events, of which"],
                 ["", pct("io_pct"), "I/O and other waiting"],
                 ["", pct("gvl_free_cpu_pct"), "computing without the GVL"],
                 ["", pct("wasteful_pct"), "releases under 50 µs, too short to be of use"],
                 ["", pct("wall_yield_pct"), "by the wall clock, 1 thread against #{@result["wall"]["threads"]}"]]
        widths = lines.transpose.map { |column| column.map(&:size).max }
        lines.map { |word, number, what| "#{word.ljust(widths[0])} #{number.rjust(widths[1])}  #{what}" }
      end

      def pct(key)
        median, low, high = @result[key].values_at("median", "min", "max").map { format("%.1f", _1) }
        "#{median} % (#{low}–#{high})"
      end

      def call
        "A call takes #{ms("call_ms")}, of which it holds the GVL for #{ms("gvl_ms")}; releases of the GVL: " \
          "#{format("%.3g", @result["releases_per_call"]["median"])} a call."
      end

      def ms(key) = Bench::Figure.duration(1000 * @result[key]["median"])

      # By the best of the turns: the others may have been disturbed.
      def contradiction
        wall = @result["wall"]
        predicted = wall["predicted_speedup"]["median"]
        return if 1 / wall["concurrent_s"]["min"] >= CONTRADICTED * predicted

        [format(CONTRADICTION, wall["threads"], 1 / wall["concurrent_s"]["median"], predicted), ""]
      end

      def knee
        threads, core_threads = @result.values_at("knee_threads", "core_knee_threads").map { _1["median"] }
        return "Nothing of it needs the GVL: threads pay as long as what they wait for keeps up." unless threads || core_threads
        return "#{count(core_threads)} threads keep all #{@result["cpus"]} cores busy: more gain nothing." if cores_first?(threads, core_threads)
        return "More threads than one gain nothing." if threads < 1.05

        "#{count(threads)} threads would keep the GVL busy: more gain nothing, fewer leave it idle."
      end

      # Of many threads a tenth says nothing.
      def count(threads) = format(threads < 9.95 ? "%.1f" : "%.0f", threads)

      def cores_first?(threads, core_threads) = core_threads && core_threads < (threads || Float::INFINITY)

      def busy
        coreless = @result["coreless_pct"]["median"]
        return if coreless < BUSY_PCT

        ["The machine was busy: #{coreless.round} % of the time there was no core. That is left out of the events, not of wall clocks."]
      end

      def others = @result["others_pct"]["median"].round

      def threads
        measured = @result["measured"]
        heading = %w[threads calls/s latency speed-up]
        heading += ["measured calls/s", "error", "latency", "error"] if measured
        Bench::Table.layout([heading, *@result["predicted"].map { |count, figures| thread_row(count, figures, measured) }], left: 0)
      end

      def thread_row(count, predicted, measured)
        row = [count, median(predicted, "per_s"), latency(predicted), median(predicted, "speedup")]
        return row unless measured

        figures = measured.fetch(count)
        row + [median(figures, "per_s"), error(figures["per_s_error_pct"]), latency(figures), error(figures["latency_ms_error_pct"])]
      end

      def median(figures, key) = number(figures[key]["median"])

      def latency(figures) = Bench::Figure.duration(1000 * figures["latency_ms"]["median"])

      def error(pct) = format("%+.1f %%", pct)

      def number(number) = Bench::Figure.compact(number)

      def processes
        return unless @result["processes"]

        heading = ["processes", "threads", "calls/s", "speed-up", "a core", "cores used", "predicted", "error"]
        rows = @result["processes"].map do |cell|
          [cell["processes"].to_s, cell["threads"].to_s, *%w[per_s speedup speedup_per_core].map { median(cell, _1) },
           "#{cell["utilisation_pct"]["median"].round} %", median(cell, "predicted_speedup"), error(cell["speedup_error_pct"])]
        end
        ["", Bench::Table.layout([heading, *rows], left: 0)]
      end
    end
  end
end
