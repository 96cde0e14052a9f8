# frozen_string_literal: true

require_relative "../predict"

module Headway
  module Predict
    # The figures of one setting: simulated with all recorded requests, and again with bootstrap samples of them for the
    # interval. An interval says how far the requests that happened to be recorded decide, not how far the model is right.
    class Figures
      REPLICATIONS = 20
      REQUESTS = 20_000
      # A replication draws about as many as were recorded: fewer would widen the interval, more cost time only.
      REPLICATED = (500..4_000)
      # Arrivals nearer than this to what all threads together can do queue up without end, as far as one can tell.
      KEEPS_UP = 0.99
      # A percentile with fewer recorded requests beyond it than two is a guess.
      LEAST = { "mean_ms" => 10, "p50_ms" => 10, "p95_ms" => 40, "p99_ms" => 200 }.freeze

      # @return [Setting]
      attr_reader :setting

      # @param workload [Workload]
      # @param setting [Setting]
      # @param replications [Integer]
      # @param cores [Integer, nil] default: those of the machine that recorded
      def initialize(workload, setting, replications: REPLICATIONS, cores: nil, seed: 1)
        @workload = workload
        @setting = setting
        @cores = cores || workload.cores
        @span = Span.new(workload, setting, cores: @cores)
        closed = simulate(seed, REQUESTS, resample: false, rate: nil)
        @load = setting.rate && per_second(closed).positive? ? setting.rate / per_second(closed) : nil
        @overloaded = !@load.nil? && @load >= KEEPS_UP
        @main = setting.rate.nil? || @overloaded ? closed : simulate(seed, REQUESTS, resample: false)
        @others = @overloaded || refusal ? [] : (1..replications).map { |i| simulate(seed + i, replicated, resample: true) }
      end

      # @return [Integer]
      attr_reader :cores

      # @return [Boolean] requests come faster than the setting can do them
      def overloaded? = @overloaded

      # @return [String, nil] why these figures mean nothing
      def refusal = @span.refusal(@main[:requests], busy: setting.rate.nil? || overloaded?)

      # @return [Float, nil] arrivals over what all threads can do when each takes the next request at once; nil: that is what they do
      attr_reader :load

      # @return [Float] as simulated with all requests; when overloaded what the setting can do
      def requests_per_s = per_second(@main)

      # @return [Array<Float>] the same, then of each bootstrap sample
      def rates = [@main, *@others].map { |run| per_second(run) }

      # @return [Float] of the time, how long somebody held the GVL, per process
      def gvl_pct = 100.0 * @main[:gvl] / (@main[:elapsed] * @setting.processes)

      # @param key [String] mean_ms, p50_ms, p95_ms or p99_ms
      # @param kind [Workload::Kind, nil] nil: all requests
      # @return [Array<Float>] of all recorded requests, then of each bootstrap sample; empty: too few were recorded
      def samples(key, kind = nil)
        return [] if overloaded? || (kind ? kind.count : @workload.count) < LEAST.fetch(key)

        [@main, *@others].filter_map { |run| latency(run, key, kind) }
      end

      # @return [Hash] of the JSON object
      def to_json_h
        { **setting.to_json_h, "overloaded" => overloaded?, "load_pct" => @load && (100 * @load).round(1), "requests_per_s" => summary(rates, 6),
          "gvl_pct" => gvl_pct.round(2), **latencies(nil),
          "classes" => @workload.kinds.map { |kind| { "name" => kind.name, **latencies(kind) } } }
      end

      private

      def simulate(seed, requests, resample:, rate: @setting.rate)
        @workload.simulate(**@setting.to_h, rate:, cores: @cores, seed:, resample:, requests:, longest_s: @span.longest_s)
      end

      def replicated = @workload.count.clamp(REPLICATED.begin, REPLICATED.end)

      def per_second(run) = run[:elapsed].zero? ? 0.0 : run[:requests] / (run[:elapsed] / 1e9)

      def latency(run, key, kind)
        count, total, p50, p95, p99 = kind ? run[:classes][kind.index] : run[:latency]
        return if count.zero?

        { "mean_ms" => total / count, "p50_ms" => p50, "p95_ms" => p95, "p99_ms" => p99 }.fetch(key) / 1e6
      end

      def latencies(kind) = LEAST.keys.to_h { |key| [key, summary(samples(key, kind))] }

      # The value is that of all requests; min and max bound the interval.
      def summary(samples, digits = 3)
        return { "median" => nil, "min" => nil, "max" => nil, "n" => 0 } if samples.empty?

        low, high = samples.minmax
        { "median" => samples.first.round(digits), "min" => low.round(digits), "max" => high.round(digits), "n" => samples.size }
      end
    end
  end
end
