# frozen_string_literal: true

module Headway
  module Bench
    # Runs an experiment: each arm several times, in turns, so that what changes on the machine meanwhile meets all alike.
    class Runner
      # @param experiment [Experiment]
      # @param arms [Array<Arm>]
      # @param interpreter [Interpreter]
      # @param runs [Integer]
      # @param progress [#puts]
      def initialize(experiment, arms, interpreter:, runs:, progress: Progress)
        @experiment = experiment
        @arms = arms
        @interpreter = interpreter
        @runs = runs
        @progress = progress
      end

      # @return [Hash{String => Array<Hash>}] for each arm the figures of its runs, in their order
      attr_reader :samples

      # @return [Hash] see {Result}
      def call
        @samples = @arms.to_h { |arm| [arm.name, Array.new(@runs) { {} }] }
        @experiment.prepare(@interpreter) do
          schedule.each.with_index(1) do |(run, cell, arms), step|
            report(step, run, cell, arms)
            stolen = Stolen.new
            @experiment.measure_together(arms, cell).each do |name, figures|
              samples[name][run].update(cell ? { cell => figures } : figures)
            end
            report_stolen(stolen.share)
          end
        end
        Result.build(@experiment, samples, @interpreter, @runs)
      end

      private

      # A B C D, D C B A, …
      def schedule
        Array.new(@runs) do |run|
          order = run.even? ? @arms : @arms.reverse
          at_once = @experiment.side_by_side? ? [order] : order.map { [_1] }
          @experiment.cells.product(at_once).map { |cell, arms| [run, cell, arms] }
        end.flatten(1)
      end

      def report(step, run, cell, arms)
        place = [*arms.map(&:name), (cell && "#{@experiment.cell_title} #{cell}"), "run #{run + 1}"].compact.join(", ")
        @progress.puts "#{@experiment.class.bench} #{step}/#{schedule.size}: #{place}"
      end

      # The kernel counts in ticks of 10 ms: less is within their error.
      def report_stolen(share)
        return unless share&.>= 0.01

        @progress.puts format("  the machine's host took %.0f %% of its CPU time meanwhile: waits are longer for it", share * 100)
      end
    end
  end
end
