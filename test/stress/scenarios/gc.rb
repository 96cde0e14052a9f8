# frozen_string_literal: true

module Stress
  module Scenarios
    # Garbage collection at every allocation for a moment, compaction, and objects that must survive both.
    class Gc < Scenario
      def round
        kept = Array.new(200) { |number| [number, number.to_s, { number => number.to_f }] }
        send(pick(%i[stress compact collect]))
        check(kept.each_with_index.all? { |object, number| object == [number, number.to_s, { number => number.to_f }] },
              "an object was changed")
        account(:collections, 1, 1)
        sleep rand(0.0..0.02)
      end

      def finish
        GC.stress = false
      end

      private

      def stress
        GC.stress = true
        Thread.new { Array.new(5) { |number| number.to_s * 3 } }.join
        20.times { |number| "allocated #{number}" }
      ensure
        GC.stress = false
      end

      def compact
        @run.plan.compacts && GC.respond_to?(:compact) ? GC.compact : GC.start
      end

      def collect
        GC.start(full_mark: rand(2).zero?, immediate_sweep: rand(2).zero?)
      end
    end
  end
end
