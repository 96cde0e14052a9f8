# frozen_string_literal: true

module Headway
  module Bench
    class Overview
      # How long the slices of two computing threads are, against what was asked for. What stock does when asked for the
      # same is known where Ruby can be asked.
      class Slices < Section
        ASKED_MS = [1, 2, 5, 20, 50].freeze

        def rows
          ASKED_MS.map do |ms|
            goal = "#{(ms * 0.9).round(1)}–#{(ms * 1.1).round(1)} ms"
            row("slices of #{ms} ms under quantum", goal, cells(ms))
          end
        end

        private

        def cells(quantum_ms)
          arms(quantum_ms).transform_values { |arm| measure(arm) }
        end

        def arms(quantum_ms)
          arms = %w[signal poll].to_h do |preempt|
            [preempt, arm(preempt, headway: { policy: "quantum", quantum_ms:, preempt: })]
          end
          return arms unless @interpreter.timeslice?

          { "stock" => arm("stock", variables: { "RUBY_THREAD_TIMESLICE" => quantum_ms.to_s }), **arms }
        end

        def arm(name, **settings) = Arm.new(name: "slices, #{name}", interpreter: @interpreter, **settings)

        def measure(arm)
          @progress.puts "#{arm.name}, #{@interpreter.name}"
          settings = JSON.generate(seconds: @scale.slice_s)
          command = [*@interpreter.command, Bench.program("slices"), settings]
          answer = Child.run(command, env: arm.environment, limit_s: 60 + @scale.slice_s)
          raise Error, "slices ran with policy #{answer["policy"] || "none"}" unless answer["policy"] == arm.policy

          lengths = answer["slices_ms"]
          return if lengths.empty?

          quartiles = [0.5, 0.25, 0.75].map { Statistics.quantile(lengths, _1) }
          Cell.new(quartiles, lengths.size, unit: "ms", kind: "quartiles")
        end
      end
    end
  end
end
