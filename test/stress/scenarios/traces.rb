# frozen_string_literal: true

module Stress
  module Scenarios
    # TracePoints, whose blocks run between any two steps of a thread: every call counted, every thread seen.
    class Traces < Scenario
      def traced = 1

      def round
        threads = rand(1..4)
        calls = rand(100..2000)
        trace = TracePoint.new(:call) { Thread.current[:calls] += 1 }
        counts = trace.enable(target: method(:traced)) do
          values_of(Array.new(threads) { start_thread { count_calls(calls) } })
        end
        check_equal([calls] * threads, counts, "calls traced")
        account(:traced_calls, threads * calls, counts.sum)
        see_threads(rand(1..10))
        trace_lines if rand(4).zero?
      end

      private

      def count_calls(calls)
        Thread.current[:calls] = 0
        calls.times { traced }
        Thread.current[:calls]
      end

      def see_threads(count)
        seen = Thread::Queue.new
        trace = TracePoint.new(:thread_begin, :thread_end) { |point| seen << [Thread.current, point.event] }
        threads = trace.enable(target_thread: nil) { Array.new(count) { start_thread { compute(100) } }.each(&:join) }
        events = Array.new(seen.size) { seen.pop }.group_by(&:first).transform_values { |pairs| pairs.map(&:last) }
        complete = threads.count { |thread| events[thread] == %i[thread_begin thread_end] }
        account(:traced_threads, count, complete)
      end

      # Everywhere, for a moment.
      def trace_lines
        lines = 0
        TracePoint.new(:line, :c_call, :raise) { lines += 1 }.enable(target_thread: nil) { Thread.new { compute(200) }.join }
        check(lines.positive?, "no line was traced")
      end
    end
  end
end
