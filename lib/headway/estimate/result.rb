# frozen_string_literal: true

module Headway
  module Estimate
    # What was measured and what follows from it. Figures are `{ median:, min:, max:, n: }` over the turns of the measurement.
    class Result
      SCHEMA = 1

      # @param rounds [Array<Measurement::Round>]
      # @param concurrency [Array<Integer>]
      # @param measure [Boolean]
      # @param cells [Array<Array<Processes::Cell>>, nil] of each round
      # @param cores [Integer]
      def initialize(rounds, concurrency:, measure:, cells:, cores:)
        @rounds = rounds
        @concurrency = concurrency
        @measure = measure
        @cells = cells
        @cores = cores
      end

      # @return [Float] share of the work's time that needs no GVL, from 0 to 1, by its events
      def fraction = to_h[:event_yield_pct][:median] / 100
      alias to_f fraction

      # @return [Hash] as `headway yield --json` prints it; durations in milliseconds
      def to_h
        @to_h ||= { headway: VERSION, schema: SCHEMA, ruby: RUBY_VERSION, cpus: @cores, **yielded, **call, wall: wall,
                    predicted: @concurrency.to_h { |threads| [threads.to_s, predicted(threads)] },
                    measured: @measure ? @concurrency.to_h { |threads| [threads.to_s, measured(threads)] } : nil,
                    processes: @cells && processes }
      end

      # @return [String]
      def inspect = "#<#{self.class} yields #{(100 * fraction).round(1)} %>"

      private

      def yielded
        { wall_yield_pct: over { |round| 100 * WallClock.yield_fraction(*compared(round)) },
          event_yield_pct: sampled(&:yield_pct),
          io_pct: sampled { _1.pct(_1.io_s) }, gvl_free_cpu_pct: sampled { _1.pct(_1.free_cpu_s) },
          wasteful_pct: sampled { _1.pct(_1.wasteful_s) },
          knee_threads: sampled { finite(_1.demands.knee_threads) },
          core_knee_threads: sampled { finite(_1.demands.core_knee_threads(@cores)) } }
      end

      def call
        { call_ms: over { |round| 1000 * round.call_s.fetch(1) }, gvl_ms: sampled { 1000 * _1.running_s },
          coreless_pct: sampled { 100 * _1.coreless_s / (_1.coreless_s + _1.own_s) }, others_pct: sampled { _1.pct(_1.others_s) },
          releases_per_call: sampled(&:releases), wasteful_releases_per_call: sampled(&:wasteful) }
      end

      # The wall clock's method, for as many calls as one thread makes in a second: what the threads took, what they would have taken
      # had nothing but their number counted, and where between the two extremes that lies.
      def wall
        threads = @rounds.first.wall_threads
        { threads: threads,
          alone_s: over { 1.0 },
          ideal_s: over { 1.0 / threads },
          concurrent_s: over { |round| 1 / speedup(round, threads) },
          predicted_speedup: predicted(threads)[:speedup],
          gained_pct: over { |round| 100 * WallClock.gained(*compared(round)) } }
      end

      def compared(round) = [round.wall_threads, speedup(round, round.wall_threads)]

      def speedup(round, threads) = round.call_s.fetch(1) / round.call_s.fetch(threads)

      # Proportions by the events, length by the wall clock: metering takes time, too.
      def demands(round) = round.sample.demands.scaled_to(round.call_s.fetch(1))

      def predicted(threads)
        figures { |round| Model::MVA.predict(demands(round), threads, cores: @cores) }.merge(
          speedup: over { |round| Model::MVA.predict(demands(round), threads, cores: @cores).per_s * round.call_s.fetch(1) }
        )
      end

      def measured(threads)
        measured = figures do |round|
          per_s = 1 / round.call_s.fetch(threads)
          Model::Prediction.new(per_s: per_s, latency_s: threads / per_s)
        end
        measured.merge(speedup: over { |round| speedup(round, threads) }, **errors(predicted(threads), measured))
      end

      # Positive: predicted too high.
      def errors(predicted, measured)
        %i[per_s latency_ms].to_h do |key|
          [:"#{key}_error_pct", 100 * ((predicted[key][:median] / measured[key][:median]) - 1)]
        end
      end

      def figures(&prediction)
        { per_s: over { prediction.call(_1).per_s }, latency_ms: over { 1000 * prediction.call(_1).latency_s } }
      end

      # Speed-ups are against one process with one thread, measured in the same turn.
      def processes
        @cells.transpose.map do |cells|
          of = cells.first
          predicted = over { |round| predicted_speedup(round, of) }
          speedups = cells.zip(@cells.map(&:first)).map { |cell, alone| cell.per_s / alone.per_s }
          { processes: of.processes, threads: of.threads, per_s: figure(cells.map(&:per_s)), speedup: figure(speedups),
            speedup_per_core: figure(speedups.map { _1 / [of.processes, @cores].min }),
            cpu_pct: figure(cells.map { 100 * _1.cpu_cores }), utilisation_pct: figure(cells.map { 100 * _1.cpu_cores / @cores }),
            predicted_speedup: predicted,
            speedup_error_pct: 100 * ((predicted[:median] / Statistics.median(speedups)) - 1) }
        end
      end

      def predicted_speedup(round, cell)
        demands = demands(round)
        Model::MVA.predict(demands, cell.threads, cores: @cores, processes: cell.processes).per_s * demands.total_s
      end

      def sampled(&block) = over { |round| block.call(round.sample) }

      def over(&block) = figure(@rounds.map(&block))

      def figure(numbers) = Statistics.summary(numbers).transform_keys(&:to_sym)

      def finite(number) = (number if number.finite?)
    end
  end
end
