# frozen_string_literal: true

module Headway
  module Bench
    # Work done by one thread and then by several: common to {Cpu} and {Io}.
    class WorkSharing < Experiment
      FIGURES = [
        Figure.new(key: "wall_s", title: "Time"),
        Figure.new(key: "cpu_s", title: "CPU time"),
        Figure.new(key: "cpu_pct", title: "CPU used", unit: "%", better: :neither)
      ].freeze

      class << self
        private

        # @return [Integer, nil] a count from the environment
        def count(env, name, most)
          text = env[name] or return
          number = Integer(text, 10, exception: false)
          return number if number&.between?(1, most)

          raise UsageError, "#{name} is #{text.inspect}: give a whole number from 1 to #{most}"
        end
      end

      # How many times faster several threads are than one.
      def ratios(arms)
        alone, shared = self.class::MODES
        arms.transform_values do |modes|
          { "speedup" => modes[alone]["wall_s"]["median"] / modes[shared]["wall_s"]["median"] }
        end
      end

      def findings(result)
        result["ratios"].map do |arm, ratios|
          "#{arm}: #{threads} threads are #{Kernel.format("%.2f", ratios["speedup"])} × as fast as one."
        end
      end
    end
  end
end
