# frozen_string_literal: true

require_relative "headline"
require_relative "notes"

module Headway
  module Report
    # The trace's analysis with its headline and notes: what `--json` prints and every other report is made of. The analysis is
    # made once, however many reports are asked for.
    class Document
      # @return [Trace]
      attr_reader :trace

      # @param trace [Trace]
      # @param paths [Array<String>] of its files, as a command would name them; none: they will be gone
      def initialize(trace, paths: trace.respond_to?(:paths) ? trace.paths : nil)
        @trace = trace
        @paths = paths
      end

      # @return [Hash] described in docs/report-json.md
      def to_h
        @to_h ||= begin
          data = readable(@trace.to_h)
          data.merge(headline: Headline.of(data, paths: @paths), notes: Notes.of(data))
        end
      end

      # @return [Labels]
      def labels
        @labels ||= Labels.new(to_h)
      end

      private

      # Names are the recorded program's, which needn't be UTF-8; every report is.
      def readable(data)
        blame = data[:blame]
        data.merge(processes: clean(data[:processes]), threads: clean(data[:threads]), marks: clean(data[:marks]),
                   work: clean(data[:work]), blame: blame.merge(frames: clean(blame[:frames])))
      end

      def clean(rows)
        return rows if rows.all? { |row| row.each_value.all? { |value| readable?(value) } }

        rows.map { |row| row.transform_values { |value| readable?(value) ? value : utf8(value) } }
      end

      def utf8(text) = text.dup.force_encoding(Encoding::UTF_8).scrub("?")

      def readable?(value)
        !value.is_a?(String) || (value.encoding != Encoding::BINARY && value.valid_encoding?) || value.ascii_only?
      end
    end
  end
end
