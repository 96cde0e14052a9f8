# frozen_string_literal: true

module Headway
  module Estimate
    # One thread's time by its events, in seconds a call; and what other threads of the process computed meanwhile.
    Sample = Data.define(:running_s, :ready_s, :io_s, :free_cpu_s, :wasteful_s, :coreless_s, :releases, :wasteful, :others_s)

    class Sample
      # @param times [Array<Numeric>] as Native.metered has them
      # @param iterations [Integer]
      # @param others_s [Float] CPU time of the process's other threads
      # @return [Sample]
      def self.from(times, iterations, others_s = 0.0) = new(*[*times, others_s].map { _1.fdiv(iterations) })

      # Time spent ready isn't the workload's, for others had the GVL; nor is time without a core.
      #
      # @return [Float]
      def own_s = running_s + io_s + free_cpu_s + wasteful_s

      # @param seconds [Float] of any kind
      # @return [Float] per cent of the workload's own time
      def pct(seconds) = 100 * seconds / own_s

      # @return [Float]
      def yield_pct = pct(io_s + free_cpu_s + wasteful_s)

      # Releases too short for another thread to gain from count as time with the GVL.
      #
      # @return [Model::Demands]
      def demands = Model::Demands.new(gvl_s: running_s + wasteful_s, free_cpu_s: free_cpu_s, delay_s: io_s)
    end
  end
end
