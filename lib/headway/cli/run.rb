# frozen_string_literal: true

require_relative "options"
require_relative "command"
require_relative "child_environment"

module Headway
  module CLI
    # `headway run`: sets the environment and becomes the command. Exit status, signals, standard streams and the
    # terminal are the command's own, because this process is the command from then on.
    module Run
      class << self
        # @param argv [Array<String>]
        # @return [Integer] never, unless the command cannot be started
        def call(argv)
          options = {}
          words = parser(options).leading(argv)
          program, *arguments = Command.resolve(words)
          variables = ChildEnvironment.build(options)
          say_off if variables.empty? && options[:summary]
          exec(variables, [program, program], *arguments)
        rescue SystemCallError => error
          raise UsageError, "#{words.first} cannot be started: #{reason(error)}"
        end

        private

        def parser(options)
          Options.new("run", "[options] [--] COMMAND...") do |parser|
            parser.on("--policy P", "fair (default), quantum or observe") do |value|
              options[:policy] = Settings.policy(value, from: "--policy")
            end
            parser.on("--quantum MS", "time slice of CPU-bound threads, milliseconds (100)") do |value|
              options[:quantum_ms] = Settings.quantum_ms(value, from: "--quantum")
            end
            parser.on("--preempt HOW", "signal (default) or poll") do |value|
              options[:preempt] = Settings.preempt(value, from: "--preempt")
            end
            parser.on("--summary", "on exit, print to stderr who ran and who waited") { options[:summary] = true }
            explain(parser)
          end
        end

        def explain(parser)
          parser.separator("")
          parser.separator("COMMAND is a Ruby script, or anything that starts Ruby: ruby, rake, bundle exec puma.")
          parser.separator("The Ruby processes it forks or spawns run with Headway too.")
          parser.separator("")
        end

        def say_off
          $stderr.puts "headway: HEADWAY=0 is set, so the command runs without Headway and without a summary"
        end

        # The system's words without the path that Ruby appends to them.
        def reason(error)
          error.message.sub(/ - .*/m, "")
        end
      end
    end
  end
end
