# frozen_string_literal: true

require "optparse"
require_relative "report"

module Headway
  module Predict
    class Validation
      # The command line of `bin/validate`.
      class Command
        ROOT = File.expand_path("../../../..", __dir__)
        private_constant :ROOT

        # @param argv [Array<String>]
        # @return [Integer] the exit status
        def self.call(argv)
          Bench.guard("validate") do
            new.call(argv)
          rescue Trace::Error => error
            raise Bench::Error, error.message
          end
        end

        def initialize
          @options = { grid: FULL, seconds: 10, runs: 3 }
          @out = File.join(ROOT, "docs/validation.md")
        end

        # Predicts, measures and writes.
        def call(argv)
          rest = parser.parse(argv)
          raise OptionParser::InvalidArgument, "#{rest.first} is not expected here" if rest.any?
          return puts(parser) if @help
          raise Bench::Error, Headway.unsupported_reason unless Headway.supported?

          [@out, plot].each { |path| Bench::Picture.check(path) }
          validation = Validation.new(directory, **@options) { |text| warn "validate: #{text}" }.call
          report = Report.new(validation, words)
          File.write(@out, report.to_markdown)
          File.write(plot, report.to_svg)
          puts report.to_markdown[/^## In short\n.*?(?=^## Every)/m]
          puts "written: #{@out}"
        end

        private

        def plot = File.join(File.dirname(@out), "validation.svg")

        # Without one of its own it begins anew.
        def directory
          return @directory if @directory
          raise SettingError, "--minutes needs --dir: where to go on from" if @options[:minutes]

          File.join(ROOT, "tmp/validation").tap { |path| FileUtils.rm_rf(path) }
        end

        def words
          grid = " --quick" if @options[:grid] == QUICK
          "bin/validate#{grid} --seconds #{Predict.number(@options[:seconds])} --runs #{@options[:runs]}"
        end

        def parser
          @parser ||= OptionParser.new("Usage: bin/validate [options]", 22) do |parser|
            parser.separator("Predicts a grid of settings from one trace, then measures them; writes docs/validation.md and its plot.\n\n")
            parser.on("--quick", "a short grid, 3 s each, once: to see that it works") { @options.update(grid: QUICK, seconds: 3, runs: 1) }
            parser.on("--seconds N", Float, "of each measurement (10)") { |value| @options[:seconds] = positive(value, "--seconds") }
            parser.on("--runs N", Integer, "of each setting (3)") { |value| @options[:runs] = positive(value, "--runs") }
            parser.on("--dir DIR", "keeps what was recorded, predicted and measured:", "the same command again goes on from there") { |path| @directory = path }
            parser.on("--minutes N", Float, "stops after so long, to go on another time") { |value| @options[:minutes] = positive(value, "--minutes") }
            parser.on("--out FILE", "instead of docs/validation.md") { |file| @out = file }
            parser.on("-h", "--help", "print this") { @help = true }
          end
        end

        def positive(value, name)
          return value if value.positive?

          raise SettingError, "#{name} is #{value}: give a number above 0"
        end
      end
    end
  end
end
