# frozen_string_literal: true

module Headway
  module Bench
    class Overview
      # A part of the table: what belongs to one measurement.
      class Section
        LIB = File.expand_path("../../..", __dir__)

        # @param interpreter [Interpreter]
        # @param scale [Scale]
        # @param progress [#puts]
        def initialize(interpreter, scale, progress)
          @interpreter = interpreter
          @scale = scale
          @progress = progress
        end

        # @return [Array<Row>] measured
        def rows = raise(NotImplementedError)

        private

        def row(figure, goal, cells)
          Row.new(figure:, goal:, ruby: @interpreter.name.delete_prefix("ruby-"), cells: cells.compact)
        end

        # @return [Hash{String => Array<Hash>}] the samples of an experiment, by column
        def samples_of(experiment, columns: COLUMNS)
          arms = columns.map { Arm.build(ARMS.fetch(_1), @interpreter) }
          runner = Runner.new(experiment, arms, interpreter: @interpreter, runs: @scale.runs, progress: @progress)
          runner.call
          columns.to_h { |column| [column, runner.samples.fetch(ARMS.fetch(column))] }
        end

        # Runs a program that switches Headway on and off by itself.
        #
        # @return [Array<Hash>] its blocks
        def blocks_of(program, settings)
          @progress.puts "#{program}: #{settings.map { |key, value| "#{key} #{value}" }.join(", ")}, #{@interpreter.name}"
          settings = settings.merge(blocks: @scale.blocks, window_s: @scale.window_s)
          command = [*@interpreter.command, "-I", LIB, "-rheadway", Bench.program(program), JSON.generate(settings)]
          limit_s = 60 + (@scale.blocks * 4 * (3 + @scale.window_s))
          Child.run(command, env: Arm.environment, limit_s:).fetch("blocks")
        end

        # @return [Statistics::Ratio] Headway against stock in the same block
        def paired(blocks, key)
          Statistics.paired_ratio(*%w[headway stock].map { |mode| blocks.map { _1[mode][key] } })
        end
      end
    end
  end
end
