# frozen_string_literal: true

require_relative "../overview"

module Headway
  module Bench
    class Overview
      # The command line of `bin/bench`.
      class Command
        # @param argv [Array<String>]
        # @return [Integer] the exit status
        def self.call(argv) = Bench.guard("bench") { new.call(argv) }

        def initialize
          @rubies = []
          @scale = FULL
          @only = []
        end

        # Measures and prints.
        #
        # @raise [UsageError, OptionParser::ParseError, Error]
        def call(argv)
          rest = parser.parse(argv)
          raise UsageError, "#{rest.first.inspect} is not expected here" if rest.any?
          return puts(parser) if @help

          overview = Overview.new(interpreters, scale: @scale, only: @only).call
          puts @json ? JSON.pretty_generate(overview.to_h) : overview.to_markdown
        end

        private

        def parser
          @parser ||= OptionParser.new("Usage: bin/bench [options]", 26) do |parser|
            Options.teach(parser)
            parser.separator("Measures the README's figures of the scheduler and prints them as a Markdown table.\n\n")
            parser.on("--quick", "minutes instead of half an hour; figures not to be quoted") { @scale = QUICK }
            parser.on("--ruby PATH", "a Ruby to measure with, repeatedly (default: this one)") { @rubies << Interpreter.new(_1) }
            parser.on("--yjit", "each Ruby also with YJIT, where it was built with it") { @yjit = true }
            parser.on("--only LIST", Options::Names, "some of #{SECTIONS.keys.join(",")}") { @only = _1 }
            parser.on("--json", "print JSON") { @json = true }
            parser.on("-h", "--help", "print this") { @help = true }
          end
        end

        def interpreters
          rubies = @rubies.empty? ? [Interpreter.current] : @rubies
          rubies.flat_map { |ruby| [ruby, *with_yjit(ruby)] }.each do |ruby|
            trouble = ruby.headway_trouble
            raise Error, "Headway does nothing under #{ruby.name}: #{trouble}" if trouble
          end
        end

        def with_yjit(ruby)
          return unless @yjit
          return ruby.with("--yjit") if ruby.yjit?

          Progress.puts "#{ruby.name} was built without YJIT"
        end
      end
    end
  end
end
