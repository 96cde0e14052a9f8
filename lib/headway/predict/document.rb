# frozen_string_literal: true

require_relative "../predict"
require_relative "../bench/table"

module Headway
  module Predict
    # Predictions of settings, as a JSON object (docs/predict-json.md) and as a table.
    class Document
      SCHEMA = 1

      # The GVL is what is short, not threads, from this share of its time on.
      GVL_TAKEN_PCT = 90
      # Of classes, in the text's heading.
      MOST_KINDS = 8
      private_constant :GVL_TAKEN_PCT, :MOST_KINDS

      Row = Data.define(:setting, :refusal, :figures)

      # @return [Array<Row>]
      attr_reader :rows

      # @param workload [Workload]
      # @param settings [Array<Setting>]
      # @param options [Hash] for {Figures}
      def initialize(workload, settings, **options)
        @workload = workload
        @grounds = Grounds.new(workload)
        @rows = settings.map do |setting|
          figures = Figures.new(workload, setting, **options) unless (refusal = @grounds.refusal_of(setting))
          refusal ||= figures.refusal
          Row.new(setting:, refusal:, figures: (figures unless refusal))
        end
      end

      # @return [Hash]
      def to_h
        { "headway" => VERSION, "schema" => SCHEMA, "recorded" => recorded, "cautions" => cautions,
          "predictions" => @rows.map { |row| { **(row.figures || row.setting).to_json_h, "refused" => row.refusal } } }
      end

      # @return [String]
      def to_s
        lines = [%W[processes threads policy quantum arrivals class #{@workload.things}/s mean p50 p95 p99 GVL]]
        @rows.each { |row| lines.concat(lines_of(row)) if row.figures }
        [heading, *(Bench::Table.layout(lines, left: 6) if lines.size > 1), *refusals, *notes.map { |text| "Note: #{text}." }].join("\n")
      end

      private

      def recorded
        { **Predict.recorded(@workload).to_json_h, "requests" => @workload.count, "marked" => @workload.marked?,
          "requests_per_s" => @workload.rate.round(6), "busy_pct" => (100 * @workload.busy).round(2),
          "classes" => @workload.kinds.map { |kind| kind_h(kind) } }
      end

      def kind_h(kind)
        { "name" => kind.name, "count" => kind.count }.merge(
          kind.to_h.except(:name, :index, :count).to_h { |key, seconds| ["#{key.to_s.delete_suffix("_s")}_ms", (seconds * 1000).round(3)] }
        )
      end

      def heading
        recorded = Predict.recorded(@workload)
        more = @workload.kinds.size - MOST_KINDS
        kinds = @workload.kinds.first(MOST_KINDS).map do |kind|
          parts = { "needs the GVL" => kind.gvl_s, "CPU without it" => kind.cpu_s, "delays" => kind.delay_s, "waits for the GVL" => kind.wait_s }
          "  #{kind.name}: #{kind.count}, #{ms(kind.mean_s * 1000)} ms each: " +
            parts.reject { |_, seconds| seconds.zero? }.map { |words, seconds| "#{words} #{ms(seconds * 1000)}" }.join(", ")
        end
        ["Recorded: #{recorded}, #{Predict.per_second(@workload.rate)} #{@workload.things} a second, " \
         "#{recorded.rate ? "threads busy #{(100 * @workload.busy).round} % of the time" : "threads always busy"}",
         *kinds, *("  and #{more} more that took less" if more.positive?), "", "Times in milliseconds, with the range that the choice of #{@workload.things} recorded allows:"].join("\n")
      end

      def lines_of(row)
        setting = row.setting
        words = [setting.processes.to_s, setting.threads.to_s, setting.policy.to_s, Predict.number(setting.quantum_ms),
                 setting.rate ? "#{Predict.per_second(setting.rate)}/s" : "closed"]
        object = row.figures.to_json_h
        all = line(words + ["all"], object, overloaded(row) || range(object["requests_per_s"]), "#{row.figures.gvl_pct.round} %")
        kinds = object["classes"].size > 1 && !row.figures.overloaded? ? object["classes"].map { |kind| line(Array.new(5, "") + [kind["name"]], kind, "", "") } : []
        [all, *kinds]
      end

      def overloaded(row) = ("too slow" if row.figures.overloaded?)

      def notes = [too_slow, *cautions].compact

      def cautions = [*@grounds.cautions, queued].compact

      def queued
        as_recorded = @rows.find { |row| row.figures && row.setting == Predict.recorded(@workload) }
        as_recorded && @grounds.queued(as_recorded.figures, "the setting recorded")
      end

      def too_slow
        slow = @rows.filter_map { |row| row.figures if row.figures&.overloaded? }
        return if slow.empty?

        "too slow: #{@workload.things} arrive faster than that setting does them" +
          (slow.all? { |figures| figures.gvl_pct >= GVL_TAKEN_PCT } ? ", for want of the GVL: ask for more processes (--processes)" : "") +
          (slow.any? { |figures| figures.setting.rate == Predict.recorded_rate(@workload) } ? "; #{CLOSED}" : "")
      end

      def line(words, object, rate, gvl) = words + [rate, *%w[mean_ms p50_ms p95_ms p99_ms].map { |key| range(object[key]) }, gvl]

      def range(summary)
        return "-" unless summary["median"]

        "#{ms(summary["median"])} (#{ms(summary["min"])}–#{ms(summary["max"])})"
      end

      def refusals = @rows.select(&:refusal).map { |row| "Refused: #{row.setting}: #{row.refusal}." }

      # Three digits, or two of what is next to nothing.
      def ms(value)
        format(value >= 100 ? "%.0f" : value >= 10 ? "%.1f" : value >= 0.1 ? "%.2f" : "%.2g", value)
      end
    end
  end
end
