# frozen_string_literal: true

module Headway
  module Bench
    class Overview
      # What Headway costs a single thread that competes with nobody, in CPU time.
      class IdleCost < Section
        WORKS = { "compute" => "alone, computing: work per CPU second, against stock",
                  "release" => "alone, releasing the GVL in a loop: the same" }.freeze

        def rows
          WORKS.map do |work, figure|
            cells = %w[signal poll].to_h do |preempt|
              blocks = blocks_of("idle_cost", { work:, preempt: })
              note = per_release(blocks) if work == "release"
              [preempt, Cell.ratio(paired(blocks, "iterations_per_cpu_s"), blocks.size, note:)]
            end
            row(figure, work == "compute" ? "≥ 0.995" : "", cells)
          end
        end

        private

        # A ratio alone would say little of a loop that does nothing else.
        def per_release(blocks)
          headway, stock = %w[headway stock].map { |mode| Statistics.median(blocks.map { 1e9 / _1[mode]["iterations_per_cpu_s"] }) }
          "#{stock.round} → #{headway.round} ns each"
        end
      end
    end
  end
end
