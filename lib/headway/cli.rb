# frozen_string_literal: true

require_relative "version"
require_relative "platform"
require_relative "reason"
require_relative "settings"

module Headway
  # The command line. Each command is a file in cli/ with a module of its name, loaded when it is asked for, that
  # answers `call(argv)` with an exit status.
  module CLI
    # Something is wrong with what was typed. Its message is the one line the user sees.
    class UsageError < StandardError; end

    COMMANDS = {
      "run" => [:Run, "run a command with Headway"],
      "report" => [:Report, "what a trace file says: summary, HTML page, Perfetto, Firefox and more"],
      "top" => [:Top, "who runs and who waits, in a running process"],
      "ctl" => [:Ctl, "settings of a running process, read and changed"],
      "yield" => [:Yield, "how much of its time a piece of Ruby needs no GVL, and what threads gain"],
      "predict" => [:Predict, "what other thread and process counts, quanta and policies would do, from a trace"],
      "advise" => [:Advise, "which setting to use, from a trace"],
      "bench" => [:Bench, "measure what Headway changes"],
      "doctor" => [:Doctor, "what works on this Ruby and machine, and what it costs"]
    }.freeze

    # They run in an older Ruby, too: another one's programs are started and looked at, and the doctor says what is wrong.
    ANYWHERE = %w[run report top ctl doctor].freeze
    BAD_USAGE = 2
    # What a shell reports of a command that an interrupt ended.
    INTERRUPTED = 130
    private_constant :ANYWHERE, :BAD_USAGE, :INTERRUPTED

    class << self
      # @param argv [Array<String>]
      # @return [Integer] the exit status
      def call(argv) = guard { dispatch(*argv) }

      # What the block raises that is the user's to mend ends in one line. So does an output that can't be written, which shows only when
      # the last of it is: Ruby itself says nothing of that at its end.
      #
      # @param name [String] of the program that says so
      # @yieldreturn [Integer] an exit status
      # @return [Integer] the exit status
      def guard(name = "headway")
        status = yield
        $stdout.flush
        status
      rescue UsageError, SettingError => error
        bad_usage(error.message, name)
      rescue Errno::EPIPE
        1 # the reader of our output has gone, as `head` does
      rescue Errno::ENOSPC, Errno::EDQUOT, Errno::EFBIG, Errno::EIO => error
        bad_usage("cannot write the output: #{Reason.of(error)}", name)
      rescue Interrupt
        INTERRUPTED
      rescue StandardError => error
        # On its way out of a file that was being loaded it comes by rescue clauses that name what isn't there yet.
        return INTERRUPTED if error.cause.is_a?(Interrupt)
        raise unless defined?(OptionParser::ParseError) && error.is_a?(OptionParser::ParseError)

        bad_usage(error.message.lines.first.chomp, name)
      end

      # @return [String] the text of `headway --help`
      def help
        commands = COMMANDS.map { |name, (_, summary)| format("  %-8s %s\n", name, summary) }
        "Usage: headway COMMAND [options]\n\n#{commands.join}\n" \
          "Who waits for whom in a program: headway run --policy observe --report out.html -- COMMAND\n\n" \
          "headway COMMAND --help says more. headway --version prints the version.\n"
      end

      # To stderr, which may be closed: nobody's exit status depends on that. Files that are told of may be called anything.
      #
      # @param text [String] a line
      # @param name [String] of the program that says it
      # @return [void]
      def say(text, name = "headway")
        require_relative "summary"
        $stderr.puts "#{name}: #{Summary::Text.plain(text)}"
      rescue IOError, SystemCallError
        nil
      end

      # Prints one JSON object, with what each of them has.
      # @param answer [Hash] its members
      # @return [void]
      def print_json(**answer)
        require "json"
        puts JSON.pretty_generate(headway: VERSION, schema: 1, **answer)
      end

      private

      def dispatch(name = nil, *arguments)
        case name
        when "-h", "--help" then print_help
        when "help" then arguments.empty? ? print_help : dispatch(arguments.first, "--help")
        when "-v", "--version", "version" then print_version
        when *COMMANDS.keys then command(name).call(arguments)
        else raise UsageError, unknown(name)
        end
      end

      def command(name)
        raise UsageError, "#{name} does nothing here: #{Platform.reason}" if Platform.reason && !ANYWHERE.include?(name)

        require_relative "cli/#{name}"
        const_get(COMMANDS.fetch(name).first)
      end

      def unknown(name)
        wrong = if name.nil? then "no command"
                elsif name.start_with?("-") then "unknown option #{name}"
                else "unknown command #{name.scrub.inspect}"
                end
        "#{wrong}: give #{COMMANDS.keys[0...-1].join(", ")} or #{COMMANDS.keys.last} (headway --help says more)"
      end

      def print_help
        puts help
        0
      end

      def print_version
        puts "headway #{VERSION}"
        0
      end

      def bad_usage(message, name)
        say(message, name)
        BAD_USAGE
      end
    end
  end
end
