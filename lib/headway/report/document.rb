# frozen_string_literal: true

require "json"
require_relative "headline"

module Headway
  module Report
    # The trace's analysis with its headline: what `--json` prints and every other report is made of. The analysis is
    # made once, however many reports are asked for.
    class Document
      # @return [Trace]
      attr_reader :trace

      # @param trace [Trace]
      def initialize(trace)
        @trace = trace
      end

      # @return [Hash] described in docs/report-json.md
      def to_h
        @to_h ||= begin
          data = @trace.to_h
          data.key?(:headline) ? data : data.merge(headline: Headline.of(data))
        end
      end

      # @return [Labels]
      def labels
        @labels ||= Labels.new(to_h)
      end

      # Names are the recorded program's: those that are no UTF-8 must not keep the report from being written.
      #
      # @param data [Hash]
      # @return [String]
      def self.json(data, pretty: false)
        pretty ? JSON.pretty_generate(data) : JSON.generate(data)
      rescue JSON::GeneratorError, EncodingError
        cleaned = clean(data)
        pretty ? JSON.pretty_generate(cleaned) : JSON.generate(cleaned)
      end

      def self.clean(value)
        case value
        when Hash then value.transform_values { |one| clean(one) }
        when Array then value.map { |one| clean(one) }
        when String then value.dup.force_encoding(Encoding::UTF_8).scrub("?")
        when Float then value.finite? ? value : nil
        else value
        end
      end
      private_class_method :clean
    end
  end
end
