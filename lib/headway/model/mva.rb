# frozen_string_literal: true

require_relative "demands"

module Headway
  # Models of a process: data in, data out.
  module Model
    # What a number of threads will do.
    #
    # @!attribute per_s [Float] calls a second, of all threads
    # @!attribute latency_s [Float] of one call
    Prediction = Data.define(:per_s, :latency_s)

    # A process as a closed network: the GVL is one server with a queue, the cores are as many servers with one queue, everything else
    # is a delay. Solved exactly by mean value analysis with marginal probabilities for the cores (Reiser and Lavenberg, 1980). That
    # nobody is at them is told by a network without them (Reiser, 1981), for with many cores what the others leave of 1 is rounding.
    # Exact for bursts of exponential length; constant ones do up to a fifth better around the knee.
    module MVA
      module_function

      # @param demands [Demands]
      # @param threads [Integer] in each process
      # @param cores [Integer]
      # @param processes [Integer] each with a GVL of its own; together they get no more than the cores have to give
      # @return [Prediction]
      def predict(demands, threads, cores:, processes: 1)
        per_s = [processes * throughput(demands, threads, cores), cores / (demands.gvl_s + demands.free_cpu_s)].min
        Prediction.new(per_s: per_s, latency_s: threads * processes / per_s)
      end

      # @return [Float] calls a second of one process
      def throughput(demands, threads, cores)
        at_gvl = at_gvl_alone = 0.0 # threads at the GVL; alone: in a network without the cores
        at_cores = [1.0] # the probability that so many threads are there
        per_s = 0.0
        1.upto(threads) do |count|
          gvl_s = demands.gvl_s * (1 + at_gvl)
          per_s = count / (demands.delay_s + gvl_s + response_s(demands.free_cpu_s, at_cores, cores))
          at_gvl = per_s * gvl_s
          next if demands.free_cpu_s.zero?

          alone_s = demands.gvl_s * (1 + at_gvl_alone)
          nobody = at_cores.first * per_s * (demands.delay_s + alone_s) / count
          at_gvl_alone = count * alone_s / (demands.delay_s + alone_s) if alone_s.positive?
          at_cores = [nobody, *one_more(at_cores, per_s * demands.free_cpu_s, cores)]
        end
        per_s
      end

      # One who arrives finds so many there; among them up to `cores` are served at once.
      def response_s(demand_s, at_cores, cores)
        return 0.0 if demand_s.zero?

        demand_s * at_cores.each_with_index.sum { |probability, there| probability * (there + 1) / [there + 1, cores].min }
      end

      # What is probable of each number above 0.
      def one_more(at_cores, load, cores) = at_cores.each_with_index.map { |probability, there| load / [there + 1, cores].min * probability }

      private_class_method :response_s, :one_more
    end
  end
end
