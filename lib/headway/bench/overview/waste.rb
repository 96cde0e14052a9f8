# frozen_string_literal: true

module Headway
  module Bench
    class Overview
      # The program of Feature #20861.
      class Waste < Section
        def rows
          samples = samples_of(Quantum.new("iterations" => @scale.iterations))
          waste = samples.transform_values { |runs| Cell.median(runs.map { _1["io_waste_s"] }, "s") }
          total = samples.transform_values { |runs| Cell.median(runs.map { _1["total_s"] }, "s") }
          [
            row("I/O waste over #{@scale.iterations} sleeps", "≤ 0.03 s", waste),
            row("total time of that program", "", total),
            row("time of its computing thread, against stock", "≤ 1.02", cpu_ratios(samples))
          ]
        end

        private

        # Runs of the arms alternate, so those of the same round are pairs.
        def cpu_ratios(samples)
          stock, *others = samples.transform_values { |runs| runs.map { _1["cpu_s"] } }.to_a
          others.to_h { |column, times| [column, Cell.ratio(Statistics.paired_ratio(times, stock.last), times.size)] }
        end
      end
    end
  end
end
