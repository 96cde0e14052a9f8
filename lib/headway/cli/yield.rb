# frozen_string_literal: true

require "json"
require_relative "options"
require_relative "../bench"

module Headway
  module CLI
    # `headway yield`: measures how much of its time a workload needs no GVL, in a process of its own.
    module Yield
      TIMEOUT_S = 120
      PROGRAM = File.expand_path("../estimate/program.rb", __dir__)
      private_constant :TIMEOUT_S, :PROGRAM

      class << self
        # @param argv [Array<String>]
        # @return [Integer] the exit status
        # @raise [UsageError]
        def call(argv)
          settings = { "requires" => [], "timeout_s" => TIMEOUT_S }
          files = parser(settings).anywhere(argv)
          work(settings, files)
          answer = measure(settings)
          raise UsageError, answer["error"] if answer["error"]

          print_result(answer, settings)
          0
        end

        private

        def parser(settings)
          Options.new("yield", "(-e CODE | FILE) [options]") do |parser|
            Headway::Bench::Options.teach(parser)
            parser.on("-e CODE", "the work") { |code| (settings["code"] ||= []) << code }
            parser.on("-r LIBRARY", "require it first") { |library| settings["requires"] << library }
            define_settings(parser, settings)
            explain(parser)
          end
        end

        def define_settings(parser, settings)
          kinds = Headway::Bench::Options
          parser.on("--concurrency LIST", kinds::Sizes, "numbers of threads (default 2,4,8,16)") { settings["concurrency"] = _1 }
          parser.on("--measure", "measure what is predicted, too") { settings["measure"] = true }
          parser.on("--processes LIST", kinds::Sizes, "fork so many processes, and measure", "each with each number of threads") do |counts|
            settings["processes"] = counts
          end
          parser.on("--seconds S", kinds::Positive, "length of each run (default 0.25)") { settings["run_s"] = _1 }
          parser.on("--timeout S", kinds::Positive, "give up after so many seconds (default #{TIMEOUT_S})") do |seconds|
            settings["timeout_s"] = seconds
          end
          parser.on("--json", "print the figures as one JSON object") { settings["json"] = true }
        end

        def explain(parser)
          parser.separator("")
          parser.separator("The work is called over and over, by several threads at once. A FILE that ends in a proc or a")
          parser.separator("lambda prepares once and has that called. What the work prints is thrown away.")
          parser.separator("")
        end

        def work(settings, files)
          raise UsageError, "give the work once: -e CODE or one FILE" if files.size + (settings["code"] ? 1 : 0) > 1
          raise UsageError, "no work: give -e CODE or a FILE" if files.empty? && settings["code"].nil?

          return settings["code"] = settings["code"].join("\n") if settings["code"]

          settings["file"] = file = files.first
          raise UsageError, "no such file: #{file.scrub}" unless File.exist?(file)
          raise UsageError, "#{file} is no file that can be read" unless File.file?(file) && File.readable?(file)
        end

        def measure(settings)
          command = [RbConfig.ruby, PROGRAM, JSON.generate(settings.transform_values { |value| text(value) })]
          Headway::Bench::Child.run(command, env: environment, limit_s: settings["timeout_s"])
        rescue JSON::GeneratorError
          raise UsageError, "the work is no valid UTF-8 text"
        rescue Headway::Bench::Stuck
          raise UsageError, "the work was not done within #{settings["timeout_s"]} s: give some that ends sooner, or a longer --timeout"
        rescue Headway::Bench::Error => error
          said = error.message[/: (?!it said nothing)(.+)/]
          raise UsageError, "the work ended the process#{said}"
        end

        # As Ruby takes a program's text, in whatever locale.
        def text(value)
          case value
          when String then value.dup.force_encoding(Encoding::UTF_8)
          when Array then value.map { |each| text(each) }
          else value
          end
        end

        # The work is measured on stock Ruby, whatever this shell has Headway do.
        def environment = ENV.keys.grep(/\AHEADWAY/).to_h { [_1, nil] }

        def print_result(answer, settings)
          return puts(JSON.generate(answer)) if settings["json"]

          require_relative "../estimate/text"
          puts Estimate::Text.new(answer)
        end
      end
    end
  end
end
