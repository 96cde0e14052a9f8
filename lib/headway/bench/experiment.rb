# frozen_string_literal: true

module Headway
  module Bench
    # One of the benchmarks: what it can be told, how one arm of it is measured, and how its figures are read.
    # A subclass says what differs; {Runner} decides what runs when.
    class Experiment
      # @return [Hash] the settings, as they appear under "config"
      attr_reader :config

      class << self
        # @return [Hash{String => Class}] every experiment by name
        def all = [Quantum, Fairness, Yield, Offload, Cpu, Io, Processes].to_h { [_1.bench, _1] }

        # @param name [String]
        # @return [Class]
        # @raise [UsageError]
        def named(name)
          all.fetch(name) { raise UsageError, "unknown benchmark #{name.scrub.inspect}: give #{all.keys.join(", ")}" }
        end

        # @return [String]
        def bench = name.split("::").last.downcase

        # @return [String] one line for the help text
        def purpose = self::PURPOSE

        # @return [Hash] settings and what they are when nobody says otherwise
        def defaults = self::DEFAULTS

        # @return [Array<Figure>]
        def figures = self::FIGURES

        # @return [Class] what its arms are: {Arm} or a subclass
        def arms = Arm

        # @return [String] the arm that the others are compared with
        def base = "stock"

        # Adds this benchmark's own options.
        #
        # @param parser [OptionParser]
        # @param settings [Hash] to be filled
        def options(parser, settings); end

        # @param env [Hash] the environment
        # @return [Hash] settings taken from there
        def settings_from(_env) = {}
      end

      # @param settings [Hash]
      def initialize(settings = {})
        @config = self.class.defaults.merge(settings)
      end

      # What the measurements need around them, such as a server.
      #
      # @param interpreter [Interpreter] calibrations are done with this one
      # @yield with everything in place
      def prepare(_interpreter) = yield

      # @return [Array<String, nil>] what is measured one by one within an arm; nil is all at once
      def cells = [nil]

      # @return [String] what cells are called in a table
      def cell_title = ""

      # @param arm [Arm]
      # @param cell [String, nil] one of {cells}
      # @return [Hash] figures by name, or by group and name
      def measure(arm, cell) = raise(NotImplementedError)

      # @return [Boolean] whether all arms are measured at once, by {measure_together}
      def side_by_side? = false

      # @param arms [Array<Arm>] all, or one
      # @param cell [String, nil]
      # @return [Hash{String => Hash}] what {measure} returns, by the arm's name
      def measure_together(arms, cell) = arms.to_h { |arm| [arm.name, measure(arm, cell)] }

      # @param arms [Hash] the figures of all arms
      # @return [Hash] what is worth saying besides each arm's medians against stock's, in the same nesting
      def ratios(_arms) = {}

      # @param arms [Hash] the figures of all arms; what does not belong there may be taken out
      # @return [Hash] what else belongs in the document
      def more(_arms) = {}

      # @param result [Hash] the finished document
      # @return [Array<String>] what the figures say, a sentence each
      def findings(_result) = []

      private

      # Runs a program under an arm and makes sure that the arm was what it claims to be.
      def run_program(name, arm, settings, limit_s:)
        command = [*arm.interpreter.command, Bench.program(name), JSON.generate(settings.merge(priority: arm.priority, apart: arm.apart))]
        answer = Child.run(command, env: arm.environment, limit_s:)
        return answer.fetch("figures") if answer["policy"] == arm.policy

        raise Error, "the #{arm.name} arm ran with policy #{answer["policy"] || "none"} instead of #{arm.policy || "none"}"
      end
    end
  end
end

require_relative "experiments/rival_arm"
require_relative "experiments/quantum"
require_relative "experiments/fairness"
require_relative "experiments/yield"
require_relative "experiments/offload_arm"
require_relative "experiments/offload"
require_relative "experiments/work_sharing"
require_relative "experiments/cpu"
require_relative "experiments/io"
require_relative "experiments/processes"
