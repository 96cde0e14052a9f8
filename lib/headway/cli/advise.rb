# frozen_string_literal: true

require_relative "options"
require_relative "predict"
require_relative "../advise"

module Headway
  module CLI
    # `headway advise`: the setting to run a recorded workload with.
    module Advise
      SIZE = /\A(\d{1,12}(?:\.\d+)?)\s*([KMGT])i?B?\z/i
      POWERS = { "K" => 1, "M" => 2, "G" => 3, "T" => 4 }.freeze
      private_constant :SIZE, :POWERS

      class << self
        # @param argv [Array<String>]
        # @return [Integer] the exit status
        # @raise [UsageError]
        def call(argv)
          options = { slos: [] }
          words = parser(options).anywhere(argv)
          processes_most = processes_in(options)
          workload = Predict.open(words, "advise")
          options[:slos].each { |slo| slo.check(workload) }
          refusal = Headway::Predict::Grounds.new(workload).refusal
          choice = choice(workload, options, processes_most) unless refusal
          refusal ||= choice.current.refusal
          return Predict.cannot("advise", refusal) if refusal

          Predict.show(Headway::Advise::Document.new(workload, choice, options[:slos]), options[:json])
          0
        end

        private

        def parser(options)
          grid = Headway::Predict::Grid
          Options.new("advise", "FILE|DIRECTORY... [options]") do |parser|
            parser.on("--slo LIST", "what to meet, such as p99=50ms or checkout:p95=0.2s") { |text| options[:slos] += Headway::Advise::Slo.parse(text) }
            parser.on("--rate N", "arrivals a second over all processes, or closed",
                      "(default: as recorded)") { |text| options[:rate] = one_rate(text) }
            parser.on("--max-memory SIZE", "of all processes, such as 2G; needs --process-memory") { |text| options[:memory] = size("--max-memory", text) }
            parser.on("--process-memory SIZE", "of one process, such as 300M") { |text| options[:process_memory] = size("--process-memory", text) }
            parser.on("--max-threads N", "of each process") { |text| options[:threads] = grid.count(text, "--max-threads", 1_024) }
            parser.on("--cores N", "of the machine (default: of the one that recorded)") { |text| options[:cores] = grid.count(text, "--cores", 4_096) }
            parser.on("--json", "print one JSON object") { options[:json] = true }
            parser.separator("")
            parser.separator("Give all files of one run, one per process, or their DIRECTORY: of several runs in it the one in")
            parser.separator("which most was done is taken. A config/puma.rb or config/sidekiq.yml here is what the diff is made for.")
            parser.separator("")
          end
        end

        def one_rate(text)
          rates = Headway::Predict::Grid.rates(text)
          raise UsageError, "--rate is #{text.scrub.inspect}: give one" if rates.size > 1

          rates
        end

        def size(option, text)
          number, unit = SIZE.match(text.strip.scrub)&.captures
          bytes = number.to_f * (1024**POWERS.fetch(unit&.upcase, 0))
          return bytes if bytes.positive?

          raise UsageError, "#{option} is #{text.scrub.inspect}: give a size such as 300M or 2G"
        end

        def processes_in(options)
          memory, each = options.values_at(:memory, :process_memory)
          raise UsageError, "--process-memory needs --max-memory: what all processes may take, such as 2G" if each && memory.nil?
          return if memory.nil?
          raise UsageError, "--max-memory needs --process-memory: what one process takes, such as 300M (a trace doesn't say)" unless each
          raise UsageError, "--max-memory is less than one process takes (--process-memory)" if memory < each

          (memory / each).floor
        end

        def choice(workload, options, processes_most)
          rate = options[:rate] ? options[:rate].first : Headway::Predict.recorded_rate(workload)
          candidates = Headway::Advise::Candidates.new(workload, rate:, processes_most:, threads_most: options[:threads], cores: options[:cores])
          CLI.say("simulating #{candidates.settings.size} settings, which may take a minute or two") if $stderr.tty?
          Headway::Advise::Choice.new(workload, candidates, options[:slos], **options.slice(:cores))
        end
      end
    end
  end
end
