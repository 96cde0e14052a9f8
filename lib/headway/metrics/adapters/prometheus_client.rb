# frozen_string_literal: true

Headway::Metrics::Adapters.need("prometheus/client", "prometheus-client")

module Headway
  module Metrics
    module Adapters
      # Headway's metrics in the registry of the gem prometheus-client, with whatever store the application chose: with
      # DirectFileStore the figures of all workers are answered together, as the application's own are.
      #
      #   Headway::Metrics::Adapters::PrometheusClient.install
      class PrometheusClient
        # One that takes over many values at once.
        class Histogram < ::Prometheus::Client::Histogram
          # @param added [Distribution] counts not cumulative
          # @return [void]
          def add(added, labels:)
            base = label_set_for(labels)
            amounts = buckets.zip(added.counts) << ["+Inf", added.count - added.counts.sum] << ["sum", added.sum]
            @store.synchronize do
              amounts.each { |le, by| @store.increment(labels: base.merge(le: le.to_s), by: by) if by.positive? }
            end
          end
        end

        # @param registry [Prometheus::Client::Registry]
        # @param every [Numeric] seconds between two reports
        # @return [Reporter] at work; its stop ends it
        def self.install(registry: ::Prometheus::Client.registry, every: 5)
          Reporter.for(registry) do
            adapter = new(registry)
            Reporter.new(every: every, to: "prometheus-client") { |families| adapter.report(families) }
          end
        end

        # @param registry [Prometheus::Client::Registry]
        # @raise [SettingError]
        def initialize(registry)
          unless registry.respond_to?(:register)
            raise SettingError, "registry is #{registry.inspect[0, 60]}: give a Prometheus::Client::Registry"
          end

          @registry = registry
          @deltas = Deltas.new
        end

        # @param families [Array<Family>]
        # @return [void]
        def report(families)
          Adapters.tell("prometheus-client", @deltas.of(families)) do |change|
            metric = metric_of(change)
            case change.type
            when :gauge then metric.set(change.number, labels: change.labels)
            when :counter then metric.increment(by: change.number, labels: change.labels)
            else metric.add(change.number, labels: change.labels)
            end
          end
        end

        private

        # Registered when first seen; a registry may have been replaced, as applications do in tests.
        def metric_of(change)
          name = change.name.to_sym
          @registry.get(name) || @registry.register(build(change, name, docstring: change.help, labels: change.labels.keys))
        end

        def build(change, name, **about)
          case change.type
          when :gauge then ::Prometheus::Client::Gauge.new(name, **about)
          when :counter then ::Prometheus::Client::Counter.new(name, **about)
          else Histogram.new(name, buckets: change.number.bounds, **about)
          end
        end
      end
    end
  end
end
