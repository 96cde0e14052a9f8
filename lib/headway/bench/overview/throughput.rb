# frozen_string_literal: true

module Headway
  module Bench
    class Overview
      # What computing threads lose when others wake up 800 times a second beside them. Under stock these others are served
      # far less often and so take less of the time; the second figure leaves their own CPU time out of account.
      class Throughput < Section
        def rows
          [1, 4].flat_map do |cpu_threads|
            beside = "#{cpu_threads} CPU #{cpu_threads == 1 ? "thread" : "threads"} beside 4 × 200 wake-ups a second"
            blocks = %w[signal poll].to_h { |preempt| [preempt, blocks_of("wakeups", { cpu_threads:, preempt: })] }
            [
              row("#{beside}: CPU throughput, against stock", "≥ 0.97", ratios(blocks, "iterations_per_s")),
              row("#{beside}: the same for equal I/O work", "", ratios(blocks, "iterations_per_own_s")),
              row("#{beside}: wake-ups served", "", wakeups(blocks))
            ]
          end
        end

        private

        def ratios(blocks, key) = blocks.transform_values { |runs| Cell.ratio(paired(runs, key), runs.size) }

        def wakeups(blocks)
          rate = ->(runs, mode) { Cell.median(runs.map { _1[mode]["wakeups_per_s"] }, "/s") }
          { "stock" => rate.call(blocks.values.flatten, "stock"), **blocks.transform_values { rate.call(_1, "headway") } }
        end
      end
    end
  end
end
