# frozen_string_literal: true

require_relative "probe"
require_relative "../../summary"

module Headway
  module CLI
    module Doctor
      # What is found out by starting Headway for a moment.
      module Workings
        # Each nap beside a computing thread costs stock Ruby a slice of 100 ms.
        STOCK_NAPS = 5
        NAPS = 50
        COST_PAIRS = 15
        # Preemption must bring a wake-up forward by at least this factor to count as working.
        CLEARLY_SOONER = 4
        private_constant :STOCK_NAPS, :NAPS, :COST_PAIRS, :CLEARLY_SOONER

        class << self
          # @return [Array<Check>]
          def checks
            without_environment do
              Headway.stop
              stock = Probe.lateness(STOCK_NAPS)
              [hooks, control, baseline(stock), floor, preemption(:signal, stock), preemption(:poll, stock),
               cost(Probe.event_cost_ns(COST_PAIRS))]
            end
          end

          private

          # The environment overrides code, and here code has to choose. What is switched off stays so.
          def without_environment
            saved = ENV.slice("HEADWAY", "HEADWAY_POLICY", "HEADWAY_PREEMPT", "RUBY_THREAD_DEFAULT_QUANTUM_MS",
                              *Surroundings::SWITCHES.reject { |name| ENV[name] == "0" })
            saved.each_key { |name| ENV.delete(name) }
            yield
          ensure
            Headway.stop
            ENV.update(saved)
          end

          def started(**settings)
            return Headway.notices.last || "Headway.start said no" unless Headway.start(**settings)

            yield
          ensure
            Headway.stop
          end

          def hooks
            stats = started(policy: :observe) do
              Thread.new { 5.times { sleep(0.001) } }.join
              Headway.stats
            end
            return Check.judge("hooks", false, stats) if stats.is_a?(String)

            count = stats[:process][:wait][:count]
            Check.judge("hooks", count >= 5, "#{count} waits seen while a thread slept five times")
          end

          # What top, ctl and the live page ask.
          def control
            return Check.note("control socket", "HEADWAY_CONTROL=0: none") if Control.off?

            said = started(policy: :observe) { [Control.path, Headway.notices.last] }
            path, notice = said
            Check.judge("control socket", said.is_a?(Array) && path, path || notice)
          end

          def baseline(stock)
            Check.new("stock Ruby", :note, "a thread that wakes beside a computing one is late by #{text(stock)}",
                      { "late_ms" => figure_ms(stock) })
          end

          def floor
            signal, wake = Native.floor
            return Check.new("machine", :note, "what a forced switch costs at the least could not be measured") unless wake

            text = format("a signal to another core takes %.3f ms, without which no forced switch is, and waking a thread there %.3f ms",
                          signal * 1e3, wake * 1e3)
            Check.new("machine", :note, text, { "signal_us" => (signal * 1e6).round(1), "wake_us" => (wake * 1e6).round(1) })
          end

          def preemption(how, stock)
            name = "preempt #{how}"
            late = started(policy: :fair, preempt: how) do
              next "runs with preempt #{Headway.preempt} instead" unless Headway.preempt == how

              Probe.lateness(NAPS)
            end
            return Check.judge(name, false, late) if late.is_a?(String)

            sooner = median(late) * CLEARLY_SOONER < median(stock)
            Check.judge(name, sooner, "with Headway it is late by #{text(late)}", { "late_ms" => figure_ms(late) })
          end

          # A difference comes out below 0 where the machine changed speed between the two of a pair; no cost is.
          def cost(differences_ns)
            figure = Probe.figure(differences_ns.map { |ns| [ns, 0.0].max }, 1)
            Check.new("cost", :note, cost_text(*figure.values_at("median", "min", "max", "n")), { "event_ns" => figure })
          end

          def cost_text(median, min, max, count)
            return format("%.0f ns a hook event (%.0f to %.0f, %d measurements)", median, min, max, count) if min.positive?

            format("%.0f ns a hook event (at most %.0f, %d measurements, the least lost in the machine's noise)",
                   median, max, count)
          end

          def text(late)
            median, max = Probe.figure(late, 9).values_at("median", "max").map { |seconds| Summary::Text.duration(seconds) }
            "#{median} (at most #{max}, #{late.size} naps)"
          end

          def figure_ms(late)
            Probe.figure(late.map { |seconds| seconds * 1e3 }, 3)
          end

          def median(values)
            Probe.figure(values, 9)["median"]
          end
        end
      end
    end
  end
end
