# frozen_string_literal: true

require "digest"
require "fileutils"
require "json"
require "tmpdir"
require_relative "../predict"
require_relative "../bench"

module Headway
  module Predict
    # Predicts a grid of settings from one trace of one setting, writes the predictions down, then measures them all. All it does is
    # kept in a directory: one that was broken off goes on from there.
    class Validation
      autoload :Kept, File.expand_path("validation/kept", __dir__)

      PROGRAM = File.expand_path("validation/program.rb", __dir__)
      BASE = Setting.new(processes: 1, threads: 5, policy: :stock, quantum_ms: 100, rate: nil)
      FULL = { threads: [1, 2, 3, 5, 8, 16], processes: [1, 2], quantum_ms: [10, 100], policy: %i[stock fair] }.freeze
      QUICK = { threads: [1, 5, 16], processes: [1, 2], quantum_ms: [100], policy: %i[stock fair] }.freeze
      BOOT_LIMIT_S = 60
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

      # @param directory [String] where the trace, the predictions and what is measured go; or are
      # @param seconds [Numeric] a measurement takes
      # @param runs [Integer] of each setting, interleaved
      # @param minutes [Numeric, nil] after which it stops measuring
      # @yieldparam text [String] what goes on
      def initialize(directory, grid: FULL, seconds: 10, runs: 3, minutes: nil, &progress)
        @directory = directory
        @seconds = seconds
        @runs = runs
        @minutes = minutes
        @progress = progress || ->(_) {}
        @settings = grid[:policy].product(grid[:quantum_ms], grid[:processes], grid[:threads]).map do |policy, quantum_ms, processes, threads|
          Setting.new(processes:, threads:, policy:, quantum_ms:, rate: nil)
        end
        @settings.reject! { |setting| setting.policy == :stock && setting.quantum_ms != 100 } unless Bench::Interpreter.current.timeslice?
      end

      # @return [self]
      # @raise [Bench::Error] the minutes are over; the next one goes on
      def call
        @til = @minutes ? now + (60 * @minutes) : Float::INFINITY
        @kept = Kept.new(@directory, "ruby" => RUBY_VERSION, "headway" => VERSION, "seconds" => @seconds, "runs" => @runs, "settings" => @settings.map(&:to_s))
        record unless @kept.predictions
        @workload = Workload.open(*traces)
        @kept.predictions ||= predict
        read_predictions
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

      def traces = Dir[File.join(@directory, "base*.headway")] # a process that we start adds its number

      def record
        FileUtils.rm_f(traces)
        @progress.call("recording #{BASE}")
        run(BASE, 0, record: File.join(@directory, "base.headway"), seconds: 2 * @seconds)
      end

      # @return [String] what is written down
      def predict
        grounds = Grounds.new(@workload)
        if (refusal = grounds.refusal)
          raise Bench::Error, "the trace is too short: #{refusal}"
        end

        rows = @settings.map do |setting|
          refused = grounds.refusal_of(setting)
          { **setting.to_json_h, "predicted" => (predicted(setting) unless refused), "refused" => refused }
        end
        JSON.pretty_generate(rows)
      end

      def predicted(setting)
        @progress.call("predicting #{setting}")
        figures = Figures.new(@workload, setting, replications: 0)
        { "requests_per_s" => figures.requests_per_s, **%w[mean_ms p50_ms p99_ms].to_h { |key| [key, figures.samples(key).first] } }
      end

      def read_predictions
        @digest = Digest::SHA256.hexdigest(@kept.predictions)
        rows = JSON.parse(@kept.predictions)
        @predictions, @refusals = %w[predicted refused].map { |key| @settings.zip(rows.map { |row| row[key] }).to_h }
      end

      def measure
        all = schedule
        figures = all.to_h do |name, setting, seed|
          [name, @kept.fetch(name) do
            left = all.count { |other,| !@kept.include?(other) }
            raise Bench::Error, "#{@minutes} minutes are over, #{left} of #{all.size} runs are left: the same command goes on" if now > @til

            @progress.call("measuring #{setting} (#{left} left)")
            figures_of(run(setting, seed))
          end]
        end
        runs = all.group_by { |_, setting,| setting }.transform_values { |rows| rows.map(&:first).grep_v(/base/).map { |name| figures[name] } }
        @base_rates = figures.filter_map { |name, one| one["requests_per_s"] if name.include?("base") }
        @cells = @settings.map { |setting| cell(setting, runs[setting]) }
      end

      # A B C, C B A, and the base between them: what changes on the machine meanwhile meets all alike.
      #
      # @return [Array<Array(String, Setting, Integer)>] name, setting and seed of each run
      def schedule
        (0...@runs).flat_map do |round|
          order = round.even? ? @settings : @settings.reverse
          order.each_with_index.flat_map do |setting, i|
            base = ["#{round} base #{i}", BASE, i + 1] if (i % 8).zero?
            [*([base] if base), ["#{round} #{setting}", setting, (100 * round) + i + 1]]
          end
        end
      end

      def cell(setting, runs)
        rates = runs.map { |figures| figures["requests_per_s"] }
        measured = KEYS.to_h { |key| [key, Statistics.median(runs.map { |figures| figures[key] })] }
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
        children = Array.new(setting.processes) do |i|
          arguments = [setting.threads, seconds, (seed * 10) + i].map(&:to_s)
          Bench::Child.new([*Bench::Interpreter.current.command, PROGRAM, *arguments], env: environment(setting, record))
        end
        children.each { |child| child.first_line(BOOT_LIMIT_S) }
        start = now
        children.each { |child| child.tell(start) }
        results = children.map { |child| child.result((seconds * 3) + 30) }
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

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def figures_of(latencies)
        all = latencies.values.flatten.sort
        raise Bench::Error, "nothing was measured: the machine is too busy, or --seconds is too short" if all.empty?

        { "requests_per_s" => all.size / @seconds.to_f, "mean_ms" => all.sum / all.size,
          "p50_ms" => Statistics.quantile(all, 0.5), "p99_ms" => Statistics.quantile(all, 0.99) }
      end
    end
  end
end
