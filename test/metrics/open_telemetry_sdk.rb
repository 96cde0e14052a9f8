# frozen_string_literal: true

module Metrics
  # The real SDK of OpenTelemetry, read when a test says so.
  module OpenTelemetrySdk
    # @return [Array] a meter provider, and the exporter that has its metrics once they are pulled
    def open_telemetry
      require "opentelemetry-metrics-sdk"
      provider = OpenTelemetry::SDK::Metrics::MeterProvider.new
      exporter = OpenTelemetry::SDK::Metrics::Export::InMemoryMetricPullExporter.new
      provider.add_metric_reader(exporter)
      [provider, exporter]
    end
  end
end
