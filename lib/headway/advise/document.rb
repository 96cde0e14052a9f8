# frozen_string_literal: true

require "shellwords"
require_relative "../advise"

module Headway
  module Advise
    # The advice, as text and as a JSON object (docs/predict-json.md).
    class Document
      SCHEMA = 1
      # Of the bootstrap samples.
      SURE = 0.95
      # Beyond it a little more load makes much more latency.
      FULL = 0.8
      private_constant :FULL

      # @param workload [Workload]
      # @param choice [Choice]
      # @param slos [Array<Slo>]
      def initialize(workload, choice, slos)
        @workload = workload
        @choice = choice
        @slos = slos
        @changes = Changes.new(workload, choice.current.setting, choice.recommended.setting)
        @grounds = Predict::Grounds.new(workload)
        @doubt = @grounds.doubt_of(choice.recommended.setting)
        @cautions = [*@grounds.cautions, *one_thread, *full, *queued, *missed] - [@doubt]
      end

      # @return [Hash]
      def to_h
        { "headway" => VERSION, "schema" => SCHEMA, "slo" => @slos.map(&:to_s), "met" => @slos.empty? ? nil : @choice.possible?,
          "already_right" => @choice.already_right?, "recommended" => figures_h(@choice.recommended), "current" => figures_h(@choice.current),
          "next_best" => @choice.next_best && figures_h(@choice.next_best), "rests_on" => rests_on, "doubt" => @doubt, "cautions" => @cautions,
          "diff" => @changes.diff, "steps" => @changes.words, "environment" => @changes.environment, "verify" => verify }
      end

      # @return [String]
      def to_s
        [headline, "", *table, "", *change, "How sure: #{how_sure}", "It rests on #{rests_on.join("; ")}.", *@cautions.map { |text| "Note: #{text}." },
         "", "To verify:", *verify.map { |line| "  #{line}" }].join("\n")
      end

      private

      def figures_h(figures)
        sureness = @choice.sureness(figures)
        { **figures.to_json_h, "meets" => @slos.empty? ? nil : @choice.meets?(figures), "sure_pct" => sureness && (100 * sureness).round(1) }
      end

      def headline
        setting = @choice.recommended.setting
        goal = @slos.join(", ")
        if !@choice.possible? then impossible
        elsif @choice.already_right? && @grounds.saturated?
          "No setting helps: what is waited for (a pool of connections, a Mutex, a busy database) is saturated. Leave yours, #{setting}, and look " \
            "there."
        elsif @choice.already_right? && !@choice.meets?(@choice.recommended)
          "No setting is clearly surer to meet #{goal} than yours, #{setting}."
        elsif @choice.already_right? then "Your setting is already right: #{setting}#{", it meets #{goal}#{", though not as recorded" if missed}" if @slos.any?}."
        else "#{@doubt ? "Try" : "Use"} #{setting}#{" to meet #{goal}" if @slos.any?}, instead of #{@choice.current.setting}."
        end
      end

      def impossible
        if @choice.recommended.overloaded?
          return "No setting keeps up with #{Predict.per_second(@choice.current.setting.rate)} #{@workload.things} a second: this needs more cores" \
                 "#{", threads or memory than are allowed" if @choice.bounded?}."
        end

        values = @slos.map do |slo|
          value = slo.values(@choice.recommended, @workload).first
          "#{slo.to_s.split("=").first} of #{value ? "#{value.round(1)} ms" : "unknown length"}"
        end
        "No setting meets #{@slos.join(", ")}. About the best that can be is #{@choice.recommended.setting}, with a #{values.join(", ")}."
      end

      def table
        rows = { "recommended" => @choice.recommended, "current" => @choice.current, "next best" => @choice.next_best }.compact
        rows.delete("recommended") if @choice.already_right?
        lines = [["", "setting", "#{@workload.things}/s", "mean ms", "p50 ms", "p95 ms", "p99 ms"]]
        rows.each { |name, figures| lines << [name, figures.setting.to_s, *cells(figures)] }
        require_relative "../bench/table"
        Bench::Table.layout(lines, left: 2).lines(chomp: true)
      end

      def cells(figures)
        return ["too slow", "-", "-", "-", "-"] if figures.overloaded?

        values = %w[mean_ms p50_ms p95_ms p99_ms].map { |key| figures.samples(key).minmax.zip([figures.samples(key).first]) }
        [Predict.per_second(figures.requests_per_s)] + values.map { |(low, value), (high, _)| value ? "#{value.round(1)} (#{low.round(1)}–#{high.round(1)})" : "-" }
      end

      def change
        return [] if @choice.already_right?

        [*@changes.diff.lines(chomp: true), *@changes.words.map { |text| "- #{text}" }, ""]
      end

      def how_sure
        sureness = @choice.sureness(@choice.recommended)
        word = if @doubt then "unsure, as #{@doubt}#{". With delays as recorded:" if sureness}"
               elsif sureness.nil? then "as far as the model goes"
               elsif sureness >= SURE then "sure"
               elsif sureness >= Choice::LIKELY then "likely"
               else "unsure"
               end
        what = @slos.any? ? "met" : "better than the current one"
        share = sureness && "#{"," unless @doubt} #{what} in #{(sureness * 100).round} % of the resampled workloads"
        "#{word}#{share}; how near the model comes to what is measured, docs/validation.md says."
      end

      def rests_on
        span_s = @workload.processes.map { |process| process[:wall] }.max / 1e9
        totals = %i[gvl_s cpu_s delay_s wait_s].to_h { |part| [part, @workload.kinds.sum { |kind| kind.count * kind.public_send(part) }] }
        all = totals.values.sum
        shares = { gvl_s: "running with the GVL", cpu_s: "CPU without it", delay_s: "delays", wait_s: "waiting for the GVL, which is no I/O" }
        parts = totals.reject { |_, seconds| seconds.zero? }.map { |part, seconds| "#{(100 * seconds / all).round} % #{shares[part]}" }
        ["#{@workload.count} #{@workload.things} in #{span_s.round(1)} s", "their time is #{parts.join(", ")}", arrivals]
      end

      def one_thread
        server = Predict::Server.of(@workload)
        return unless server&.one_thread?

        "#{server.name} does one #{@workload.thing} at a time in each process, so that only numbers of processes are advised: threads take " \
          "another #{@workload.jobs? ? "job runner" : "server"}"
      end

      def full
        figures = @choice.recommended
        return if figures.overloaded? || figures.load.nil? || figures.load < FULL

        "there is little headroom: #{Predict.per_second(figures.setting.rate)} arrivals a second are #{(100 * figures.load).round} % of what " \
          "#{figures.setting} can do, and with some more #{@workload.things} queue up (--rate tries it)"
      end

      def missed
        return unless as_recorded? && @choice.meets?(@choice.current)

        slo = @slos.find { |one| one.recorded_ms(@workload) > one.limit_ms } or return
        "what the current setting meets as simulated it missed as recorded, with #{slo.to_s.split("=").first} of " \
          "#{slo.recorded_ms(@workload).round(1)} ms, not #{slo.values(@choice.current, @workload).first.round(1)}: the model has " \
          "nothing of other programs on its cores, nor of #{@workload.things} that come in bursts"
      end

      # At the rate and on the cores that were recorded.
      def as_recorded?
        current = @choice.current
        current.setting.rate == Predict.recorded_rate(@workload) && current.cores >= @workload.cores
      end

      def queued
        return unless as_recorded?

        current = @choice.current
        return "the current setting comes out too slow for as many #{@workload.things} as were recorded: #{Predict::CLOSED}" if current.overloaded?

        @grounds.queued(current, "the current setting")
      end

      def arrivals
        rate = @choice.current.setting.rate
        rate ? "arrivals at random, #{Predict.per_second(rate)} a second" : "threads that always find the next #{@workload.thing}"
      end

      def verify
        setting = @choice.recommended.setting
        options = setting.policy == :stock ? "--policy observe" : "--policy #{setting.policy} --quantum #{Predict.number(setting.quantum_ms)}"
        change = "make the change, then  " unless @choice.already_right?
        several = setting.processes > 1
        after = several ? "after" : "after.headway"
        [*("mkdir after   # each process writes a trace of its own" if several),
         "#{change}#{@changes.run("#{options} --record #{after}")}",
         "#{@changes.headway} predict #{after}   # recorded beside predicted",
         "#{@changes.headway} advise #{after}#{" --slo #{slo_argument}" if @slos.any?}"]
      end

      # As it was given, where a shell takes it so: p99=50ms would become p99\=50ms.
      def slo_argument
        text = @slos.join(",")
        text.match?(/\A[\w=,.:]+\z/) ? text : text.shellescape
      end
    end
  end
end
