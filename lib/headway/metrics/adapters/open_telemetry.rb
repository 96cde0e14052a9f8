# frozen_string_literal: true

Headway::Metrics::Adapters.need("opentelemetry-metrics-api", "opentelemetry-metrics-api")
begin
  require "opentelemetry/metrics/global" # where OpenTelemetry.meter_provider is, since 0.9
rescue LoadError
  nil
end

module Headway
  module Metrics
    module Adapters
      # Headway's metrics as OpenTelemetry's, named cruby.gvl.*, through whatever provider the application set up. Its API takes
      # over no whole histogram, so each is two counters: .sum and .count.
      #
      #   Headway::Metrics::Adapters::OpenTelemetry.install
      class OpenTelemetry
        # @param meter_provider [OpenTelemetry::Metrics::MeterProvider]
        # @param every [Numeric] seconds between two reports
        # @return [Reporter] at work; its stop ends it
        def self.install(meter_provider: ::OpenTelemetry.meter_provider, every: 5)
          Reporter.for(meter_provider) do
            adapter = new(meter_provider)
            Reporter.new(every: every, to: "OpenTelemetry") { |families| adapter.report(families) }
          end
        end

        # @param meter_provider [OpenTelemetry::Metrics::MeterProvider]
        # @raise [SettingError]
        def initialize(meter_provider)
          unless meter_provider.respond_to?(:meter)
            raise SettingError, "meter_provider is #{meter_provider.inspect[0, 60]}: give one of OpenTelemetry's"
          end

          @meter = meter_provider.meter("headway", version: VERSION)
          @deltas = Deltas.new
          @instruments = {}
        end

        # @param families [Array<Family>]
        # @return [void]
        def report(families)
          Adapters.tell("OpenTelemetry", @deltas.flat(families)) do |change|
            attributes = change.labels.transform_keys(&:to_s)
            instrument = @instruments[change.name] ||= build(change)
            instrument.public_send(change.type == :gauge ? :record : :add, change.number, attributes: attributes)
          end
        end

        private

        def build(change)
          about = { unit: change.name.match?(/_seconds(_sum|_total)?\z/) ? "s" : "1", description: change.help }
          change.type == :gauge ? @meter.create_gauge(name(change), **about) : @meter.create_counter(name(change), **about)
        end

        def name(change)
          change.name.delete_suffix("_total").sub(/\Aruby_gvl_/, "cruby.gvl.").sub(/_(sum|count)\z/, '.\1')
        end
      end
    end
  end
end
