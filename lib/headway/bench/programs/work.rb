# frozen_string_literal: true

# What servers of the benchmarks do; required by puma.rb and sidekiq.rb.

require_relative "heap"

# Light and heavy work, of a length that does not depend on the machine.
class Work
  # @param config [Hash] rounds_per_ms, light_waits, light_wait_ms, light_ms, heavy_ms
  def initialize(config)
    @config = config
  end

  # Waits as those for a database: the GVL is free meanwhile.
  def light
    waits = @config.fetch("light_waits")
    waits.times do
      sleep(@config.fetch("light_wait_ms") / 1000.0)
      compute(@config.fetch("light_ms") / waits.to_f)
    end
  end

  def heavy = compute(@config.fetch("heavy_ms"))

  private

  # Ruby as applications run it: it allocates, formats and joins.
  def compute(ms)
    (ms * @config.fetch("rounds_per_ms")).round.times { Array.new(20) { |index| "item #{index}" }.join(",") }
  end
end
