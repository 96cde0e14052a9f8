# frozen_string_literal: true

module Harness
  # For what is said of figures that were really measured.
  module Measured
    # A figure is what it is where the machine let the work run: one that other programs spoilt, or a stop, proves nothing, so it is
    # measured again. What is wrong in itself is wrong each time.
    def measured(times = 3)
      yield
    rescue Minitest::Assertion
      raise if (times -= 1).zero?

      retry
    end
  end
end
