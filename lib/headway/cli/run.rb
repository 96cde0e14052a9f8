# frozen_string_literal: true

require_relative "options"
require_relative "command"
require_relative "child_environment"
require_relative "trace_files"
require_relative "supervision"

module Headway
  module CLI
    # `headway run`: sets the environment and becomes the command. Exit status, signals, standard streams and the
    # terminal are the command's own, because this process is the command from then on. Where something is to be said after it, a
    # report or that a program which may be no Ruby left no trace, the command is a child, and {Supervision} passes all that on.
    module Run
      NO_TRACE = "the command left no trace (did it start a Ruby that Headway supports?)"
      private_constant :NO_TRACE

      class << self
        # @param argv [Array<String>]
        # @return [Integer] the command's exit status, where a report or a word on the trace is to come after it; else this process
        #   becomes the command
        # @raise [UsageError] it can't be started
        def call(argv)
          options = {}
          words = parser(options).leading(argv)
          command = Command.resolve(words)
          files = TraceFiles.new(options[:record], options[:report])
          options[:record] = files.record
          return supervise(options, command, files) if supervised?(options, command) && !Settings.disabled?

          files.clean_up
          become(options, command)
        end

        private

        def supervised?(options, command) = options[:report] || (options[:record] && !Command.ruby?(command))

        def become(options, command)
          program, arguments = command
          variables = ChildEnvironment.build(options)
          say_off(options) if variables.empty?
          exec(variables, program, *arguments)
        rescue SystemCallError => error
          raise UsageError, "#{program.first} cannot be started: #{Reason.of(error)}"
        end

        def supervise(options, command, files)
          begin
            status = Supervision.run { become(options, command) }
            files.report ? write_report(files) : say_no_trace(files)
          ensure
            files.clean_up
          end
          Supervision.end_like(status)
        end

        def say_no_trace(files) = files.written.empty? && CLI.say(NO_TRACE)

        # The command's status is the command's, whatever becomes of the report.
        def write_report(files)
          require_relative "../trace"
          require_relative "../report"
          paths = files.written
          return CLI.say("no report: #{NO_TRACE}") if paths.empty?

          trace = Headway::Trace.open(*paths, lanes: true)
          document = Headway::Report::Document.new(trace, paths: files.kept? ? trace.paths : [])
          Headway::Report.html(document, files.report)
          document.to_h[:notes].each { |note| CLI.say("warning: #{note}") } # what the command left behind goes on, say
          CLI.say("report written to #{files.report}")
        rescue LoadError, Headway::Error, SystemCallError => error
          CLI.say("no report: #{Reason.line(error)}")
        end

        def parser(options)
          Options.new("run", "[options] [--] COMMAND...") do |parser|
            parser.on("--policy P", "fair (default), quantum (time slices only),", "or observe (measures only), whatever the program says") do |value|
              options[:policy] = Settings.policy(value, from: "--policy")
            end
            parser.on("--quantum MS", "time slice of CPU-bound threads, milliseconds (100),", "where the program gives none") do |value|
              options[:quantum_ms] = Settings.quantum_ms(value, from: "--quantum")
            end
            parser.on("--preempt HOW", "signal (default) or poll, likewise") do |value|
              options[:preempt] = Settings.preempt(value, from: "--preempt")
            end
            parser.on("--record FILE", "write a trace of who ran, who waited and because of whom;",
                      "given a directory, each process makes a file there") { |value| options[:record] = value }
            parser.on("--report FILE.html", "on exit, make a page of it") { |value| options[:report] = value }
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

        def say_off(options)
          CLI.say(Settings.odd_switch) if Settings.odd_switch
          wanted = options[:summary] ? "summary" : options[:record] && "trace"
          CLI.say("HEADWAY=0 is set, so the command runs without Headway and without a #{wanted}") if wanted
        end
      end
    end
  end
end
