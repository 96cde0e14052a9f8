# frozen_string_literal: true

Headway::Metrics::Adapters.need("yabeda", "yabeda")

module Headway
  module Metrics
    module Adapters
      # Headway's metrics for whatever Yabeda reports to, read when Yabeda collects. Yabeda takes over no whole histogram, so each
      # is two counters: _sum and _count.
      #
      #   Headway::Metrics::Adapters::Yabeda.install
      class Yabeda
        # @return [Yabeda] the adapter, one and the same until Yabeda is reset
        def self.install
          return @adapter if ::Yabeda.configurators.any? { |_, block| block.equal?(@block) }

          adapter = @adapter = new
          @block = proc { collect { adapter.report } }
          ::Yabeda.configure(&@block)
          adapter
        end

        def initialize
          @deltas = Deltas.new
          @lock = Mutex.new
        end

        # @return [void]
        def report
          @lock.synchronize do
            Adapters.tell("Yabeda", @deltas.flat(Metrics.collect)) do |change|
              metric = metric_of(change)
              change.type == :gauge ? metric.set(change.labels, change.number) : metric.increment(change.labels, by: change.number)
            end
          end
        end

        private

        def metric_of(change)
          ::Yabeda.metrics[change.name] ||
            ::Yabeda.public_send(change.type, change.name.to_sym, tags: change.labels.keys, comment: change.help)
        end
      end
    end
  end
end
