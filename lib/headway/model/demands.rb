# frozen_string_literal: true

module Headway
  module Model
    # What one call of a workload (or one request) asks for, in seconds.
    #
    # @!attribute gvl_s [Float] holding the GVL
    # @!attribute free_cpu_s [Float] computing without the GVL
    # @!attribute delay_s [Float] waiting for anything else
    Demands = Data.define(:gvl_s, :free_cpu_s, :delay_s) do
      # @return [Float] what a call takes alone
      def total_s = gvl_s + free_cpu_s + delay_s

      # @return [Float] share of the time that doesn't need the GVL
      def yield_fraction = 1 - (gvl_s / total_s)

      # The number of threads beyond which the GVL is busy all the time: 1 / (1 - yield fraction), asymptotic bounds of
      # operational analysis (Denning and Buzen, 1978).
      #
      # @return [Float] infinity where nothing needs the GVL
      def knee_threads = gvl_s.zero? ? Float::INFINITY : total_s / gvl_s

      # @param cores [Integer]
      # @return [Float] the number of threads, of whatever process, beyond which the cores are busy all the time
      def core_knee_threads(cores)
        cpu_s = gvl_s + free_cpu_s
        cpu_s.zero? ? Float::INFINITY : cores * total_s / cpu_s
      end

      # @return [Demands] of the same proportions, for a call that takes so long alone
      def scaled_to(seconds) = with(**to_h.transform_values { _1 * seconds / total_s })
    end
  end
end
