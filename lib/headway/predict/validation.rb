# frozen_string_literal: true

require "digest"
require "fileutils"
require "json"
require "tmpdir"
require_relative "../predict"
require_relative "../bench"

module Headway
  module Predict
    # Predicts a grid of settings from one trace of one setting, writes the predictions down, then measures them all.
    class Validation
      PROGRAM = File.expand_path("validation/program.rb", __dir__)
      BASE = Setting.new(processes: 1, threads: 5, policy: :stock, quantum_ms: 100, rate: nil)
      FULL = { threads: [1, 2, 3, 5, 8, 16], processes: [1, 2], quantum_ms: [10, 100], policy: %i[stock fair] }.freeze
      QUICK = { threads: [1, 5, 16], processes: [1, 2], quantum_ms: [100], policy: %i[stock fair] }.freeze
      KEYS = %w[requests_per_s mean_ms p50_ms p99_ms].freeze
      # What is allowed: of the setting that was recorded; of other threads, processes or quanta; of another policy.
      LIMITS = { same: { "requests_per_s" => 2, "p50_ms" => 5 },
                 unseen: { "requests_per_s" => 5, "mean_ms" => 10, "p99_ms" => 20 },
                 policy: { "requests_per_s" => 10, "mean_ms" => 15, "p99_ms" => 25 } }.freeze

      # Predicted and measured figures of one setting, by KEYS; amdahl: requests a second; refusal: why it wasn't predicted.
      Cell = Data.define(:setting, :predicted, :measured, :spread, :amdahl, :refusal) do
        # @return [Symbol] :same, :unseen or :policy
        def sort
          return :policy if setting.policy != BASE.policy

          setting == BASE ? :same : :unseen
        end

        # @return [Float, nil] per cent, predicted above measured is positive
        def error(key) = predicted&.fetch(key) && 100.0 * ((predicted[key] / measured[key]) - 1)

        # @return [Boolean, nil] whether a figure is within its limit; nil: it has none
        def within?(key)
          limit = LIMITS.fetch(sort)[key]
          limit && error(key) && error(key).abs <= limit
        end

        # @return [Float]
        def amdahl_error = 100.0 * ((amdahl / measured["requests_per_s"]) - 1)
      end

      # @return [Array<Cell>]
      attr_reader :cells
      # @return [String] SHA-256 of the predictions as they were written down
      attr_reader :digest
      # @return [Array<Float>] requests a second of the base setting, measured again between the others
      attr_reader :base_rates

      attr_reader :seconds, :runs, :workload

      # @param directory [String] where the trace and the predictions go
      # @param seconds [Numeric] a measurement takes
      # @param runs [Integer] of each setting, interleaved
      # @param start_in [Numeric] seconds the processes have to start in before they begin together
      # @yieldparam text [String] what goes on
      def initialize(directory, grid: FULL, seconds: 10, runs: 3, start_in: 2.5, &progress)
        @directory = directory
        @seconds = seconds
        @runs = runs
        @start_in = start_in
        @progress = progress || ->(_) {}
        @settings = grid[:policy].product(grid[:quantum_ms], grid[:processes], grid[:threads]).map do |policy, quantum_ms, processes, threads|
          Setting.new(processes:, threads:, policy:, quantum_ms:, rate: nil)
        end
        @settings.reject! { |setting| setting.policy == :stock && setting.quantum_ms != 100 } unless Bench::Interpreter.current.timeslice?
        @base_rates = []
      end

      # @return [self]
      def call
        FileUtils.mkdir_p(@directory)
        traces = File.join(@directory, "base*.headway") # a process that we start adds its number
        FileUtils.rm_f(Dir[traces])
        @progress.call("recording #{BASE}")
        run(BASE, 0, record: File.join(@directory, "base.headway"), seconds: 2 * @seconds)
        @workload = Workload.open(*Dir[traces])
        predict
        measure
        self
      end

      # How far the setting predicted to do most stays behind the one that did most, in per cent of requests a second.
      #
      # @return [Float]
      def regret
        known = cells.select(&:predicted)
        chosen = known.max_by { |cell| cell.predicted["requests_per_s"] }
        100.0 * (1 - (chosen.measured["requests_per_s"] / known.map { |cell| cell.measured["requests_per_s"] }.max))
      end

      private

      def predict
        grounds = Grounds.new(@workload)
        if (refusal = grounds.refusal)
          raise Bench::Error, "the trace is too short: #{refusal}"
        end
        @refusals = @settings.to_h { |setting| [setting, grounds.refusal_of(setting)] }
        @predictions = @settings.reject { |setting| @refusals[setting] }.to_h do |setting|
          @progress.call("predicting #{setting}")
          figures = Figures.new(@workload, setting, replications: 0)
          [setting, { "requests_per_s" => figures.requests_per_s, **%w[mean_ms p50_ms p99_ms].to_h { |key| [key, figures.samples(key).first] } }]
        end
        write_down
      end

      def write_down
        rows = @settings.map { |setting| { **setting.to_json_h, "predicted" => @predictions[setting], "refused" => @refusals[setting] } }
        text = JSON.pretty_generate(rows)
        @digest = Digest::SHA256.hexdigest(text)
        File.write(File.join(@directory, "predictions.json"), text)
      end

      def measure
        measured = Hash.new { |hash, setting| hash[setting] = [] }
        @runs.times do |round|
          order = round.even? ? @settings : @settings.reverse
          order.each_with_index do |setting, i|
            @base_rates << figures_of(run(BASE, i + 1))["requests_per_s"] if (i % 8).zero?
            @progress.call("measuring #{setting} (#{round + 1} of #{@runs})")
            measured[setting] << figures_of(run(setting, (100 * round) + i + 1))
          end
        end
        @cells = @settings.map { |setting| cell(setting, measured[setting]) }
      end

      def cell(setting, runs)
        rates = runs.map { |figures| figures["requests_per_s"] }
        measured = KEYS.to_h { |key| [key, Bench::Statistics.median(runs.map { |figures| figures[key] })] }
        Cell.new(setting:, predicted: @predictions[setting], measured:, spread: rates.minmax, amdahl: amdahl(setting), refusal: @refusals[setting])
      end

      # What existing advisers print: the part that needs the GVL is serial, the rest parallel.
      def amdahl(setting)
        all = @workload.kinds.sum(&:count).to_f
        gvl_s = @workload.kinds.sum { |kind| kind.count * kind.gvl_s } / all
        total_s = gvl_s + (@workload.kinds.sum { |kind| kind.count * (kind.cpu_s + kind.delay_s) } / all)
        parallel = 1 - (gvl_s / total_s)
        setting.processes / total_s / ((1 - parallel) + (parallel / setting.threads))
      end

      # @return [Hash{String => Array<Float>}] latencies in milliseconds by class, of all processes
      def run(setting, seed, record: nil, seconds: @seconds)
        start = Process.clock_gettime(Process::CLOCK_MONOTONIC) + @start_in
        children = Array.new(setting.processes) do |i|
          arguments = [setting.threads, start, seconds, (seed * 10) + i].map(&:to_s)
          Bench::Child.new([*Bench::Interpreter.current.command, PROGRAM, *arguments], env: environment(setting, record))
        end
        results = children.map { |child| child.result(@start_in + (seconds * 3) + 30) }
        results.reduce { |all, one| all.merge(one) { |_, a, b| a + b } }
      ensure
        children&.each(&:kill)
      end

      # Headway isn't loaded where nothing asks for it.
      def environment(setting, record)
        return Bench::Arm.environment(headway: { policy: "observe", record: }) if record
        return Bench::Arm.environment(headway: { policy: setting.policy.to_s, quantum_ms: setting.quantum_ms }) unless setting.policy == :stock

        Bench::Arm.environment.merge(setting.quantum_ms == 100 ? {} : { "RUBY_THREAD_TIMESLICE" => setting.quantum_ms.to_s })
      end

      def figures_of(latencies)
        all = latencies.values.flatten.sort
        raise Bench::Error, "nothing was measured: the machine is too busy, or --seconds is too short" if all.empty?

        { "requests_per_s" => all.size / @seconds.to_f, "mean_ms" => all.sum / all.size,
          "p50_ms" => Bench::Statistics.quantile(all, 0.5), "p99_ms" => Bench::Statistics.quantile(all, 0.99) }
      end
    end
  end
end
