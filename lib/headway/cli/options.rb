# frozen_string_literal: true

require "optparse"

module Headway
  module CLI
    # Option parsing as every command does it: --help and --version, and one line for a mistake.
    class Options
      # @param command [String] the command's name, such as "run"
      # @param usage [String] what follows the name in the usage line
      # @yieldparam parser [OptionParser] to define the command's own options on
      def initialize(command, usage)
        @command = command
        @parser = OptionParser.new("Usage: headway #{command} #{usage}", 26)
        @parser.separator("")
        # An option, or the -- before a command, is no other option's value.
        @parser.accept(NilClass) { |value,| value.to_s.start_with?("--") ? raise(OptionParser::MissingArgument) : value }
        yield @parser
        define_common
      end

      # Takes the options off the front, up to the first word that is none.
      #
      # @return [Array<String>] the rest
      # @raise [UsageError]
      def leading(argv)
        checked { @parser.order(argv) }
      end

      # Takes the options wherever they stand.
      #
      # @return [Array<String>] the other words
      # @raise [UsageError]
      def anywhere(argv)
        checked { @parser.permute(argv) }
      end

      # Takes the options of a command that has no other arguments.
      #
      # @raise [UsageError]
      def all(argv)
        rest = checked { @parser.parse(argv) }
        return if rest.empty?

        raise UsageError, "#{rest.first.scrub.inspect} is not expected here (headway #{@command} --help says more)"
      end

      private

      def define_common
        @parser.on("-h", "--help", "print this") { finish(@parser.help) }
        @parser.on("-v", "--version", "print the version") { finish("headway #{VERSION}") }
      end

      def finish(text)
        puts text
        exit
      end

      # What did_you_mean, which Ruby has and needn't load, makes OptionParser add to its message.
      def meant(error)
        names = error.message.lines.drop(1).join(" ").delete_prefix("Did you mean?").split
        error.args.first.start_with?("--") && names.any? ? ", did you mean #{names.map { |name| "--#{name}" }.join(" or ")}?" : ""
      end

      def checked
        yield
      rescue OptionParser::InvalidOption => error
        raise UsageError, "unknown option #{error.args.first}#{meant(error)} (headway #{@command} --help lists them)"
      rescue OptionParser::MissingArgument => error
        raise UsageError, "#{error.args.first} needs a value (headway #{@command} --help says which)"
      rescue OptionParser::ParseError => error
        raise UsageError, "#{error.message.lines.first.chomp} (headway #{@command} --help lists the options)"
      rescue ArgumentError => error
        raise unless error.message.start_with?("invalid byte sequence")

        raise UsageError, "an argument is no valid #{Encoding.default_external} text (headway #{@command} --help says what is expected)"
      end
    end
  end
end
