# frozen_string_literal: true

require_relative "../predict"

module Headway
  module Predict
    # How much time is simulated at most: an hour; where requests take long or come seldom as much as it takes for some hundreds, unless
    # that is more than can be waited for.
    class Span
      HOUR_S = 3_600
      REQUESTS = 300
      # Of each thread when all are busy: a tenth of the time is for warming up, which takes two.
      ROUNDS = 20
      # Which of them happened to be over in time decides, when each thread did fewer.
      ROUNDS_LEAST = 9
      # Of who has the GVL, beyond an hour. A second takes ten million.
      SWITCHES_MOST = 2_000_000
      TICKS_PER_S = 100
      LONGEST_S = 1_000_000_000
      private_constant :HOUR_S, :REQUESTS, :ROUNDS, :ROUNDS_LEAST, :SWITCHES_MOST, :TICKS_PER_S, :LONGEST_S

      # @param workload [Workload]
      # @param setting [Setting]
      # @param cores [Integer]
      def initialize(workload, setting, cores:)
        @workload = workload
        @setting = setting
        @cores = cores
      end

      # @return [Float] seconds
      def longest_s = @longest_s ||= [wanted_s, SWITCHES_MOST / switches_per_s].min.clamp(HOUR_S, LONGEST_S)

      # @param requests [Integer] that were simulated
      # @param busy [Boolean] with all threads busy
      # @return [String, nil] why that tells nothing
      def refusal(requests, busy:)
        least = busy ? [Grounds::REQUESTS_LEAST, ROUNDS_LEAST * @setting.all_threads].max : Grounds::REQUESTS_LEAST
        return if requests >= [least, REQUESTS].min

        "its #{@workload.things} take so long, or come so seldom, that #{requests} are all that could be simulated in " \
          "#{(longest_s / HOUR_S).round} hours"
      end

      private

      def wanted_s
        rounds = [ROUNDS, REQUESTS.fdiv(@setting.all_threads)].max
        [rounds * request_s, @setting.rate ? REQUESTS / @setting.rate : 0].max
      end

      # With all threads busy, by what there is least of: threads, the GVL or cores.
      def request_s
        gvl_s, cpu_s, delay_s = %i[gvl_s cpu_s delay_s].map { |part| mean_s(part) }
        [gvl_s + cpu_s + delay_s, @setting.threads * gvl_s, @setting.all_threads * (gvl_s + cpu_s) / @cores].max
      end

      def mean_s(part) = @workload.kinds.sum { |kind| kind.count * kind.public_send(part) } / @workload.count

      # Slices, and bursts beside requests: those of the requests end with these. The VM's ticks cost a tenth of a switch, but only while
      # somebody waits.
      def switches_per_s
        alone = @setting.threads + @workload.threads_beside == 1
        alone ? 0.0 : @setting.processes * ((1_000.0 / @setting.quantum_ms) + (TICKS_PER_S / 10.0) + @workload.beside_per_s)
      end
    end
  end
end
