# frozen_string_literal: true

module Headway
  module Bench
    # Runs an experiment: each arm several times, in turns, so that what changes on the machine meanwhile meets all alike.
    class Runner
      # @param experiment [Experiment]
      # @param arms [Array<Arm>]
      # @param interpreter [Interpreter]
      # @param runs [Integer]
      # @param progress [IO]
      def initialize(experiment, arms, interpreter:, runs:, progress: $stderr)
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
          schedule.each.with_index(1) do |(run, cell, arm), step|
            report(step, run, cell, arm)
            figures = @experiment.measure(arm, cell)
            samples[arm.name][run].update(cell ? { cell => figures } : figures)
          end
        end
        Result.build(@experiment, samples, @interpreter, @runs)
      end

      private

      # A B C D, D C B A, …
      def schedule
        Array.new(@runs) do |run|
          order = run.even? ? @arms : @arms.reverse
          @experiment.cells.flat_map { |cell| order.map { |arm| [run, cell, arm] } }
        end.flatten(1)
      end

      def report(step, run, cell, arm)
        place = [arm.name, (cell && "#{@experiment.cell_title} #{cell}"), "run #{run + 1}"].compact.join(", ")
        @progress.puts "#{@experiment.class.bench} #{step}/#{schedule.size}: #{place}"
      end
    end
  end
end
