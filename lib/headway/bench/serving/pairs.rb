# frozen_string_literal: true

module Headway
  module Bench
    class Serving
      # Each arm's rate against stock's in the turn beside it (see {Turns}).
      class Pairs
        def initialize
          @turns = []
        end

        # @param answers [Hash{Arm => Array<Hash>}] turn by turn
        # @return [void]
        def add(answers)
          rates = answers.to_h { |arm, turns| [arm.name, turns.map { Turns.rate([_1]) }] }
          @turns.concat(Array.new(rates.values.map(&:size).max.to_i) { |turn| rates.transform_values { _1[turn] } })
        end

        # @return [Hash{String => Hash}] by the arm's name: ratio, low, high, and of how many turns
        def ratios
          pairs = @turns.select { _1.key?("stock") }
          arms = pairs.flat_map(&:keys).uniq - ["stock"]
          arms.to_h { |arm| [arm, ratio(pairs.select { _1.key?(arm) }, arm)] }
        end

        # @param ratio [Hash] one of {ratios}
        # @return [String] what it says
        def self.sentence(ratio)
          Kernel.format("%.3f × the throughput of stock (95 %% interval %.3f–%.3f; median of the turns side by side: %d)",
                        *ratio.values_at("ratio", "low", "high", "turns"))
        end

        private

        def ratio(pairs, arm)
          own, stock = [arm, "stock"].map { |name| pairs.map { _1[name] } }
          { **Statistics.paired_ratio(own, stock).to_h, turns: pairs.size }.transform_keys(&:to_s)
        end
      end
    end
  end
end
