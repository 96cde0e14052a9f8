# frozen_string_literal: true

module Headway
  module Estimate
    # Runs the work by turns: metered, by one thread, by several. In each turn every configuration has its run, of a length at which
    # the work dominates what surrounds it.
    class Measurement
      # One turn: a metered sample, and seconds a call by number of threads.
      Round = Data.define(:sample, :call_s, :wall_threads)

      # Between the lowest and the highest of six lies the median with 97 %, whatever the distribution.
      ROUNDS = 6
      FEWEST_ROUNDS = 2
      # For slow work there are fewer turns.
      TOTAL_S = 30
      private_constant :ROUNDS, :FEWEST_ROUNDS, :TOTAL_S

      # @return [Float] of one call by one thread, after {call}
      attr_reader :call_s

      # @param work [Work]
      # @param concurrency [Array<Integer>]
      # @param measure [Boolean] all of them, not just the one that the wall clock's method needs
      # @param cores [Integer]
      # @param run_s [Float]
      def initialize(work, concurrency, measure:, cores:, run_s:)
        @work = work
        @concurrency = concurrency
        @measure = measure
        @cores = cores
        @run_s = run_s
      end

      # @return [Array<Round>]
      def call
        @call_s = calibrate
        # Of three, for one that the machine disturbs may say anything.
        wall = Array.new(3) { wall_threads(@work.metered(iterations(@call_s))) }.sort[1]
        calls_s = [1, wall, *(@concurrency if @measure)].uniq.to_h { |threads| [threads, pilot_s(threads)] }
        runs = calls_s.transform_values { |call_s| iterations(call_s) }
        Array.new(rounds(calls_s)) { |round| measure(runs, wall, reverse: round.odd?) }
      end

      private

      # As many calls as take long enough to be timed; the first ones load and compile what is loaded and compiled once.
      def calibrate
        @work.seconds(1, 1)
        count = 1
        loop do
          seconds = @work.seconds(1, count)
          return seconds / count if seconds > @run_s / 5

          count = [(count * @run_s / 4 / [seconds, 1e-9].max).ceil, count * 100].min
        end
      end

      # @return [Integer] calls of each thread, so that one run has a good length
      def iterations(call_s) = [(@run_s / call_s).round, 1].max

      # What a call takes beside others: as long as alone, or n times as long.
      def pilot_s(threads)
        return @call_s if threads == 1

        count = [iterations(@call_s) / threads, 1].max
        @work.seconds(threads, count) / count
      end

      # Enough to keep the GVL busy and then some: then what they gain says most, as more would. But computing without the GVL takes
      # cores: more threads than there are cores for would show the machine's limit, not the GVL's.
      def wall_threads(sample)
        demands = sample.demands
        cores_first = demands.core_knee_threads(@cores) < demands.knee_threads
        enough = cores_first ? demands.core_knee_threads(@cores).floor : 4 * [demands.knee_threads, @concurrency.max].min.ceil
        enough.clamp(2, [@concurrency.max, 2].max)
      end

      def rounds(calls_s)
        turn_s = [@call_s, *calls_s.values].sum { |call_s| [@run_s, call_s].max }
        (TOTAL_S / turn_s).floor.clamp(FEWEST_ROUNDS, ROUNDS)
      end

      # A B C, C B A: what changes on the machine meanwhile meets all alike.
      def measure(runs, wall, reverse:)
        sample = @work.metered(runs.fetch(1)) unless reverse
        order = reverse ? runs.to_a.reverse : runs.to_a
        call_s = order.to_h { |threads, count| [threads, @work.seconds(threads, count) / (threads * count)] }
        Round.new(sample: sample || @work.metered(runs.fetch(1)), call_s: call_s, wall_threads: wall)
      end
    end
    private_constant :Measurement
  end
end
