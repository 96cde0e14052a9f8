# frozen_string_literal: true

module Harness
  # CPU work whose result is known.
  module Computing
    private

    def compute(rounds)
      sum = 0
      rounds.times { |number| sum += number }
      sum == rounds * (rounds - 1) / 2 or raise "computed #{sum} for #{rounds}"
    end
  end
end
