# frozen_string_literal: true

require_relative "../serving"
require_relative "page"

module Headway
  module Bench
    class Serving
      # The command line of `bin/bench-server`.
      class Command
        DEFAULT_PATH = File.expand_path("../../../../docs/benchmarks.md", __dir__)
        ARMS = %w[stock timeslice10 headway].freeze
        PARTS = %w[puma sidekiq trivial].freeze
        APPS = { "bench" => Serving, "shop" => Shop }.freeze
        QUICK = { "requests" => 150, "saturation_s" => 3, "loads" => [50] }.freeze
        private_constant :DEFAULT_PATH, :ARMS, :PARTS, :APPS, :QUICK

        # @param argv [Array<String>]
        # @return [Integer] the exit status
        def self.call(argv) = Bench.guard("bench-server") { new.call(argv) }

        def initialize
          @settings = {}
          @threads = [5, 10]
          @workers = [1, 2]
          @arms = ARMS
          @parts = PARTS
          @app = Serving
          @runs = 1
        end

        # Measures, prints and writes. What is measured is written after each configuration: the whole takes hours.
        #
        # @raise [UsageError, OptionParser::ParseError, Error]
        def call(argv)
          rest = parser.parse(argv)
          raise UsageError, "#{rest.first.inspect} is not expected here" if rest.any?
          return puts(parser) if @help

          @parts = ["puma"] if @app == Shop
          path = @path || (DEFAULT_PATH unless @quick || @app == Shop)
          Picture.check(path) if path
          check_gems
          results = []
          measurements.each do |experiment, arms, runs|
            results << [Runner.new(experiment, arms, interpreter:, runs:).call, experiment]
            puts Table.new(*results.last), "" unless @json
            Page.new(path, ["bin/bench-server", *argv].join(" ")).write(results) if path
          end
          puts JSON.pretty_generate(results.map(&:first)) if @json
          Progress.puts "The figures are in #{path}" if path
        end

        private

        def interpreter = @interpreter ||= Interpreter.current

        def parser
          @parser ||= OptionParser.new("Usage: bin/bench-server [options]", 26) do |parser|
            Options.teach(parser)
            parser.separator("Measures Puma and Sidekiq under load, stock and with Headway, prints tables and writes docs/benchmarks.md.\n\n")
            how_long(parser)
            parser.on("--only LIST", Options::Names, "some of #{PARTS.join(",")}") { @parts = parts(_1) }
            parser.on("--app NAME", "what Puma serves: bench, made for this; or shop,", "examples/rails_shop: only that, printed") { app(_1) }
            what(parser)
            parser.on("--arms LIST", Options::Names, "which arms (default #{ARMS.join(",")})") { @arms = _1 }
            parser.on("--ruby PATH", "a Ruby to measure with (default: this one)") { @interpreter = Interpreter.new(_1) }
            parser.on("--json", "print JSON") { @json = true }
            parser.on("--write FILE.md", "where to, instead of docs/benchmarks.md") { @path = _1 }
            parser.on("-h", "--help", "print this") { @help = true }
          end
        end

        def what(parser)
          parser.on("--work-us N", Options::Count, "what requests of the trivial part compute,", "on average (default: nothing)") { @work_us = _1 }
          parser.on("--threads LIST", Options::Counts, "threads of a worker (default 5,10)") { @threads = positive(_1, "--threads") }
          parser.on("--workers LIST", Options::Counts, "workers (default 1,2)") { @workers = positive(_1, "--workers") }
          parser.on("--loads LIST", Options::Counts, "percent of stock's capacity (default 30,50,70,85)") do |numbers|
            @settings["loads"] = loads(numbers)
          end
        end

        def how_long(parser)
          parser.on("--quick", "a few minutes: one small configuration,", "nothing to be quoted, nothing written") { quick }
          parser.on("--requests N", Options::Count, "of each cell (default #{DEFAULTS["requests"]})") { @settings["requests"] = _1 }
          parser.on("--runs N", Options::Count, "of each cell (default #{@runs})") { @runs = _1 }
          parser.on("--seconds S", Options::Positive, "at saturation (default #{DEFAULTS["saturation_s"]})") { @settings["saturation_s"] = _1 }
        end

        # Options given as well override it, in whatever order.
        def quick
          @quick = true
          @settings = QUICK.merge(@settings)
          @threads = [10] if @threads == [5, 10]
          @workers = [1] if @workers == [1, 2]
        end

        def measurements
          (@parts & PARTS).flat_map { |part| send(part) }
        end

        def puma
          @workers.product(@threads).map { |workers, threads| loaded(@app, threads, workers) }
        end

        def sidekiq = [loaded(Jobs, @threads.max, 1)]

        def loaded(kind, threads, workers)
          [kind.new({ "threads" => threads, "workers" => workers, **@settings }), [*arms, Serving.alone(interpreter)], @runs]
        end

        def trivial
          experiment = Trivial.new({ "threads" => @threads.min, "workers" => 1, "work_us" => @work_us, **@settings.slice("saturation_s") }.compact)
          [[experiment, Trivial.arms(interpreter), @runs]]
        end

        # Missing after an hour of measuring would be late.
        def check_gems
          Gems.flags("puma") if @parts != ["sidekiq"]
          return unless @parts.include?("sidekiq")

          Gems.flags("sidekiq")
          Sidekiq.redis or raise Error, "Sidekiq's part needs redis-server: install Redis, or leave it out: --only puma,trivial"
        end

        # What cannot run here is left out, and said.
        def arms
          @able ||= ServedArm.choose(@arms, interpreter).reject { |arm| arm.trouble&.tap { Progress.puts("#{arm.name} is left out: #{_1}") } }
          @able.any? ? @able : raise(UsageError, "none of these arms can run here")
        end

        def positive(numbers, option)
          numbers.all?(1..256) ? numbers : raise(UsageError, "#{option} is #{numbers.join(",")}: give whole numbers from 1 to 256")
        end

        def app(name)
          @app = APPS.fetch(name) { raise UsageError, "--app is #{name.inspect}: give #{APPS.keys.join(" or ")}" }
        end

        def parts(names)
          unknown = (names - PARTS).first
          unknown ? raise(UsageError, "--only is #{unknown.inspect}: give some of #{PARTS.join(",")}") : names
        end

        def loads(numbers)
          return numbers if numbers.all?(1..99)

          raise UsageError, "--loads is #{numbers.join(",")}: give percent from 1 to 99, such as 30,50,70,85"
        end
      end
    end
  end
end
