# frozen_string_literal: true

require_relative "options"
require_relative "../bench"

module Headway
  module CLI
    # `headway bench`: runs one of the benchmarks and prints its figures.
    module Bench
      class << self
        # @param argv [Array<String>] what follows `headway bench`
        # @return [Integer] the exit status
        # @raise [UsageError]
        def call(argv)
          name, *arguments = argv
          return general(argv) if name.nil? || name.start_with?("-")

          request = Headway::Bench::Request.new(Headway::Bench::Experiment.named(name))
          Options.new("bench #{name}", "[options]") { |parser| request.define(parser) }.all(arguments)
          request.call
          0
        rescue Headway::Bench::UsageError => error
          raise UsageError, error.message
        rescue Headway::Bench::Error => error
          CLI.say(error.message)
          1
        end

        private

        # Answers --help and --version; without either, a name is missing.
        def general(argv)
          experiments = Headway::Bench::Experiment.all
          Options.new("bench", "#{experiments.keys.join("|")} [options]") do |parser|
            experiments.each { |name, experiment| parser.separator("    #{name.ljust(26)} #{experiment.purpose}") }
            parser.separator("\nheadway bench quantum --help lists the options of one.\n\n")
          end.all(argv)
          raise UsageError, "no benchmark: give #{experiments.keys.join(", ")}"
        end
      end
    end
  end
end
