# frozen_string_literal: true

module Stress
  module Scenarios
    # Headway's own methods, from several threads at once.
    class Face < Scenario
      def round
        uses = Array.new(rand(1..4)) { pick(%i[batch interactive pass quantum statistics left_by_exception]) }
        done = values_of(uses.map { |use| start_thread { send(use) } })
        account(:face_calls, uses.size, done.count(true))
      end

      private

      def batch = Headway.batch { compute(20_000) && Headway.interactive { sleep 0.0005; true } }
      def interactive = Headway.interactive { Headway.batch { compute(20_000) } }
      def pass = 200.times { compute(50) && Headway.pass } == 200

      # Headway may be off in between, and then knows no thread.
      def quantum
        handle = Headway.thread
        handle.quantum_ms = rand(1..50)
        compute(50_000)
        handle.quantum_ms = nil
        [true, false].include?(handle.batch?)
      rescue Headway::Error
        true
      end

      def statistics
        stats = Headway.stats
        process = stats[:process]
        Headway.thread.stats
        times = process.values_at(:running, :ready, :suspended)
        check(times.none?(&:negative?)) { "negative time: #{times}" }
        check(process[:running] <= stats[:wall] * 1.02 + 0.2) { "#{process[:running]} s running in #{stats[:wall]} s" }
        true
      end

      def left_by_exception
        Headway.batch { raise KeyError, "deliberate" }
      rescue KeyError
        true
      end
    end
  end
end
