# frozen_string_literal: true

module Stress
  module Scenarios
    # at_exit blocks registered by several threads while the process works; the parent sees that each ran, last one first.
    class AtExits < Scenario
      LIMIT = 40

      def round
        @registered ||= 0
        return sleep(0.01) if @registered >= LIMIT

        lock = Thread::Mutex.new
        values_of(Array.new(2) { start_thread { lock.synchronize { register(@registered += 1) } } })
        account(:at_exits, 2, 2)
        sleep rand(0.0..0.05)
      end

      private

      def register(number)
        @run.report << [:at_exit_issued, number]
        at_exit do
          unless @run.forked?
            work(number)
            @run.report << [:at_exit, number]
          end
        end
      end

      def work(number)
        case number % 5
        when 0 then Thread.new { compute(5000) }.join
        when 1 then sleep 0.001
        when 2 then compute(5000)
        when 3 then GC.start
        end
      end
    end
  end
end
