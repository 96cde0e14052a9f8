# frozen_string_literal: true

require_relative "../processors"

module Headway
  module Predict
    # Simulations need no GVL, and each has random numbers of its own: a thread a core has the same results sooner.
    module Parallel
      # @param items [Array]
      # @yieldparam item [Object]
      # @return [Array] what the block made of each, in their order
      # @raise [Exception] what the block raised first
      def self.map(items, &block)
        left = items.each_with_index.to_a.reverse
        results = []
        workers = Array.new([Processors.count, items.size].min) do
          Thread.new do
            Thread.current.report_on_exception = false
            while (item, index = left.pop)
              results[index] = block.call(item)
            end
          rescue Exception # the others needn't go on
            left.clear
            raise
          end
        end
        workers.each(&:join)
        results
      ensure
        workers&.each(&:kill)
      end
    end
  end
end
