# frozen_string_literal: true

require "headway"
require "headway/autotune"
require "headway/model/mva"

module Autotuning
  # A thing to set, which remembers all it was set to.
  class Dial
    attr_reader :value, :range, :settings

    def initialize(value, range)
      @value = value
      @range = range
      @settings = []
    end

    def value=(value)
      @settings << value
      @value = value
    end
  end

  # A made process: windows as a closed network of so many threads would give them, with noise from a seeded generator.
  class Plant
    Demands = Headway::Model::Demands

    # lock_s: with a number, what limits is a lock (or a pool of one) held for so long, not the GVL: who waits for it is suspended.
    attr_accessor :gvl_s, :delay_s, :lock_s, :quantum_gain
    attr_reader :search, :lines, :values

    # @param noise [Float] relative, of every figure; twice that of a p99
    def initialize(values: { threads: 5 }, ranges: { threads: 1..16 }, seed: 1, noise: 0.03, windows: 5, samples: 100)
      @random = Random.new(seed)
      @noise = noise
      @values = values
      @lines = []
      @gvl_s = 0.002
      @delay_s = 0.018
      @quantum_gain = 0.0
      knobs = ranges.map { |name, range| Headway::Autotune::Knob.new(name, Dial.new(values[name], range)) }
      @search = Headway::Autotune::Search.new(knobs: knobs, values: values, windows: windows, samples: samples) { |line| @lines << line }
    end

    # @return [Array<Hash>] the settings the search wanted, window by window
    def run(windows, &overrides) = Array.new(windows) { |number| step(**(overrides&.call(number) || {})) }

    def step(count: nil, values: nil, **changes)
      @values = values if values
      made = window(count)
      made = made.with(**changes) unless changes.empty?
      @values = @search.take(made, @values)
    end

    def window(count = nil)
      per_s, latency_s = predicted
      count ||= (per_s * 10 * noise).round
      p99_s = 2 * latency_s * noise(2) * (1 + @quantum_gain * Math.log2((@values[:quantum_ms] || 100) / 100.0))
      running_s, suspended_s = @gvl_s * noise, (@lock_s ? latency_s - @gvl_s : @delay_s) * noise
      kind = Headway::Autotune::Kind.new(count: count, p99_s: p99_s, running_s: running_s, suspended_s: suspended_s)
      Headway::Autotune::Window.new(at: Time.at(0), seconds: 10, classes: { "GET /" => kind })
    end

    def outcomes = @search.history.map(&:outcome)

    private

    def predicted
      demands = Demands.new(gvl_s: @lock_s || @gvl_s, free_cpu_s: 0.0, delay_s: @delay_s + (@lock_s ? @gvl_s : 0.0))
      Headway::Model::MVA.predict(demands, @values.fetch(:threads, 5), cores: 2).then { |it| [it.per_s, it.latency_s] }
    end

    # Normal, by the central limit theorem.
    def noise(factor = 1) = 1 + @noise * factor * (Array.new(12) { @random.rand }.sum - 6)
  end
end
