# frozen_string_literal: true

require "json"
require_relative "options"
require_relative "trace_arguments"
require_relative "../predict"
require_relative "../report"

module Headway
  module CLI
    # `headway predict`: what other settings would do to a recorded workload.
    module Predict
      THREADS_MOST = 1_024
      PROCESSES_MOST = 256
      CANNOT = 1
      private_constant :THREADS_MOST, :PROCESSES_MOST, :CANNOT

      class << self
        # @param argv [Array<String>]
        # @return [Integer] the exit status
        # @raise [UsageError]
        def call(argv)
          options = { asked: {} }
          words = parser(options).anywhere(argv)
          workload = open(words, "predict") { |files| check(options[:plot], files) if options[:plot] }
          settings = Headway::Predict::Grid.new(workload, options[:asked]).settings
          refusal = Headway::Predict::Grounds.new(workload).refusal
          return cannot("predict", refusal) if refusal

          show(Headway::Predict::Document.new(workload, settings, **options.slice(:cores, :seed)), options[:json])
          Headway::Predict::Plot.new(workload, settings, **options.slice(:cores, :seed)).write(options[:plot]) if options[:plot]
          0
        rescue Headway::Report::Error => error # the plot's
          raise UsageError, error.message
        end

        # @param words [Array<String>] files and directories
        # @yieldparam files [Array<String>] that they stand for, before they are read
        # @return [Workload]
        # @raise [UsageError]
        def open(words, command)
          TraceArguments.need(words, command)
          files = TraceArguments.files(words)
          yield files if block_given?
          Headway::Workload.open(*TraceArguments.of_one_run(words, files))
        rescue Headway::Trace::Error => error
          raise UsageError, error.message
        end

        # @return [Integer] the exit status
        def cannot(command, why)
          CLI.say("can't #{command} from this trace: #{why}")
          CANNOT
        end

        # @param document [#to_h, #to_s]
        # @param json [Boolean, nil] as one JSON object
        # @return [void]
        def show(document, json)
          puts(json ? JSON.generate(document.to_h) : document.to_s)
        end

        private

        def check(plot, files)
          TraceArguments.spare(files, plot, "--plot")
          Headway::Report.check(plot)
        end

        def parser(options)
          grid = Headway::Predict::Grid
          asked = options[:asked]
          Options.new("predict", "FILE|DIRECTORY... [options]") do |parser|
            parser.on("--threads LIST", "of each process, such as 1,2,4,8") { |text| asked[:threads] = grid.counts(text, "--threads", THREADS_MOST) }
            parser.on("--processes LIST", "such as 1,2") { |text| asked[:processes] = grid.counts(text, "--processes", PROCESSES_MOST) }
            parser.on("--quantum LIST", "milliseconds, such as 10,100") { |text| asked[:quantum_ms] = grid.quanta(text) }
            parser.on("--policy LIST", "stock, quantum, fair") { |text| asked[:policy] = grid.policies(text) }
            parser.on("--rate LIST", "arrivals a second over all processes, or closed:",
                      "each thread takes the next request at once") { |text| asked[:rate] = grid.rates(text) }
            parser.on("--cores N", "of the machine (default: of the one that recorded)") { |text| options[:cores] = grid.count(text, "--cores", 4_096) }
            parser.on("--seed N", "another sequence of random numbers") { |text| options[:seed] = grid.count(text, "--seed", 999_999) }
            parser.on("--json", "print one JSON object") { options[:json] = true }
            parser.on("--plot FILE", "draw latency against load for each setting (SVG)") { |file| options[:plot] = file }
            parser.separator("")
            parser.separator("What isn't given is as recorded. Give all files of one run, one per process,")
            parser.separator("or their DIRECTORY: of several runs in it the one in which most was done is taken.")
            parser.separator("")
          end
        end
      end
    end
  end
end
