# frozen_string_literal: true

module Headway
  module Report
    # A server's threads as they were since its first request or job: what they waited for while it was loaded is nothing that any
    # request waits for, and in a short recording it would be most.
    module Boot
      # @param data [Hash] as {Trace#to_h} returns it
      # @return [Hash] the same without its processes' boots, in `threads` and in the totals of their waits
      def self.left_out(data)
        boots = data[:threads].filter_map { |thread| thread[:boot] }
        return data if boots.empty?

        totals = data[:totals]
        waits = %i[ready_s ready_batch_s].to_h { |key| [key, less(totals[key], boots.sum { |boot| boot[key] })] }
        threads = data[:threads].map { |thread| thread[:boot] ? since(thread, thread[:boot]) : thread }
        data.merge(threads: threads, totals: totals.merge(waits))
      end

      def self.since(thread, boot)
        before = boot[:waited_for].to_h { |part| part.values_at(:thread, :s) }
        parts = thread[:waited_for].map { |part| part[:others] ? part : part.merge(s: less(part[:s], before.fetch(part[:thread], 0.0))) }
        thread.merge(%i[running_s ready_s suspended_s].to_h { |key| [key, less(thread[key], boot[key])] })
              .merge(waited_for: parts.select { |part| part[:s].positive? })
      end
      private_class_method :since

      # Of equal sums that were rounded apart there may be a rest.
      def self.less(all_s, part_s) = [all_s - part_s, 0.0].max.then { |rest_s| rest_s < 1e-9 ? 0.0 : rest_s }
      private_class_method :less
    end
  end
end
