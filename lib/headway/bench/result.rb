# frozen_string_literal: true

require "etc"

module Headway
  module Bench
    # The document that a benchmark prints: figures of each arm, and what they are against stock's.
    module Result
      SCHEMA = 1

      module_function

      # @param experiment [Experiment] after it ran
      # @param samples [Hash{String => Array<Hash>}] for each arm the figures of its runs
      # @param interpreter [Interpreter]
      # @param runs [Integer]
      # @return [Hash]
      def build(experiment, samples, interpreter, runs)
        arms = samples.transform_values { |figures| summarize(figures) }
        more = experiment.more(arms)
        {
          "headway" => VERSION, "schema" => SCHEMA, "bench" => experiment.class.bench,
          "ruby" => interpreter.version, "cpus" => Etc.nprocessors,
          "config" => { "runs" => runs }.merge(experiment.config),
          "arms" => arms, "ratios" => ratios(experiment, arms), **more
        }
      end

      # @param samples [Array<Hash>] of the same shape, with numbers at the leaves
      # @return [Hash] of that shape, with a median, min, max and n at each leaf
      def summarize(samples)
        samples.first.keys.to_h do |key|
          values = samples.map { _1[key] }
          [key, values.first.is_a?(Hash) ? summarize(values) : Statistics.summary(values)]
        end
      end

      def ratios(experiment, arms)
        own = experiment.ratios(arms)
        base = arms[experiment.class.base]
        arms.to_h do |name, figures|
          against_base = base && !figures.equal?(base) ? compare(figures, base) : {}
          [name, merge(against_base, own.fetch(name, {}))]
        end.reject { |_, ratios| ratios.empty? }
      end

      def compare(figures, base)
        return quotient(figures["median"], base["median"]) if figures.key?("median")

        figures.to_h { |key, value| [key, compare(value, base.fetch(key))] }
      end

      # nil where there is nothing to compare with, such as the CPU iterations of no CPU threads.
      def quotient(number, base) = number && base && !base.zero? ? number / base.to_f : nil

      def merge(ratios, more)
        ratios.merge(more) { |_, one, other| one.is_a?(Hash) ? merge(one, other) : other }
      end

      private_class_method :summarize, :ratios, :compare, :quotient, :merge
    end
  end
end
