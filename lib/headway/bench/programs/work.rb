# frozen_string_literal: true

# What servers of the benchmarks do; required by puma.rb and sidekiq.rb.

require_relative "heap"

# Light and heavy work, of a length that does not depend on the machine.
class Work
  # @param config [Hash] rounds_per_ms, light_waits, light_wait_ms, light_ms, heavy_ms; work_us: of trivial work, on average
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

  # With HEADWAY_BENCH_SAYS it says of itself that it computes.
  def heavy
    computing = -> { compute(@config.fetch("heavy_ms")) }
    ENV.key?("HEADWAY_BENCH_SAYS") ? Headway.batch(&computing) : computing.call
  end

  # Exponentially distributed, as hardly any two requests take as long.
  def trivial
    mean_us = @config.fetch("work_us", 0)
    compute(-Math.log(1 - rand) * mean_us / 1000) if mean_us.positive?
  end

  private

  # Ruby as applications run it: it allocates, formats and joins.
  def compute(ms)
    (ms * @config.fetch("rounds_per_ms")).round.times { Array.new(20) { |index| "item #{index}" }.join(",") }
  end
end
