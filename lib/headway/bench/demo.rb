# frozen_string_literal: true

require_relative "../bench"
require_relative "bars"

module Headway
  module Bench
    # What Headway does, shown within three minutes: two of the benchmarks, stock and with Headway. This is `bin/demo`.
    class Demo
      ARMS = %w[stock headway].freeze

      # @param argv [Array<String>] where to write the picture
      # @return [Integer] the exit status
      def self.call(argv) = Bench.guard("demo") { new(argv.first).call }

      # @param path [String] of the picture
      # @param quantum [Hash] settings of the benchmarks
      # @param fairness [Hash]
      def initialize(path, quantum: {}, fairness: { "seconds" => 3 }, progress: Progress)
        @path = path
        @experiments = { Quantum.new(quantum) => %w[total_s io_waste_s], Fairness.new(fairness) => %w[requests_per_s] }
        @progress = progress
      end

      # Runs, prints and draws.
      def call
        Picture.check(@path)
        results = @experiments.map do |experiment, keys|
          result = Runner.new(experiment, arms, interpreter:, runs: 1, progress: @progress).call
          show(result, experiment, keys)
          [result, experiment]
        end
        Picture.new(results).write(@path)
        puts "", "The picture is in #{@path}"
      end

      private

      def interpreter = @interpreter ||= Interpreter.current

      def arms
        trouble = interpreter.headway_trouble
        raise Error, "Headway does nothing here: #{trouble}" if trouble

        Arm.choose(ARMS, interpreter)
      end

      def show(result, experiment, keys)
        puts "", Table.new(result, experiment)
        experiment.class.figures.select { keys.include?(_1.key) }.each { puts "", Bars.new(_1, result, experiment) }
        puts ""
      end
    end
  end
end
