# frozen_string_literal: true

# What servers of the benchmarks do; required by puma.rb and sidekiq.rb.

# Light and heavy work, of a length that does not depend on the machine.
class Work
  # What stays in memory, as much as in a small Rails application. In a heap with next to nothing in it a few thousand objects more, such
  # as Headway's own code, halve what is free, and garbage is collected twice as often.
  KEPT = Array.new(150_000) { |number| [number.to_s] }
  Process.warmup

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
