# frozen_string_literal: true

module Stress
  module Scenarios
    # Forked children, with threads of their own, that end in several ways.
    class Forks < Scenario
      def round
        manners = Array.new(rand(1..2)) { pick(%i[leave_now leave threads stay_busy grandchild restart]) }
        statuses = manners.map { |manner| [fork_child(manner), rand(2)] }.map do |pid, detached|
          beat
          detached.zero? ? Process.wait2(pid).last : Process.detach(pid).value
        end
        codes = statuses.map { |status| status.exitstatus || status.to_s }
        check_equal([42] * manners.size, codes, "statuses of #{manners.join(", ")}")
        account(:children, manners.size, statuses.count(&:exited?))
      end

      private

      def fork_child(manner)
        fork do
          GC.stress = false
          Thread.current.report_on_exception = false
          send(manner)
        end
      end

      def leave_now = exit!(42)
      def leave = exit(42)

      def threads
        exit!(1) unless Array.new(3) { Thread.new { compute(20_000) } }.all?(&:value)
        exit(42)
      end

      # Ends under load.
      def stay_busy
        Array.new(3) { |own| Thread.new { loop { own.zero? ? sleep(0.0005) : 1 + 1 } } }
        sleep 0.005
        exit(42)
      end

      def grandchild
        pid = fork { Thread.new { compute(5000) }.join; exit!(41) }
        exit!(Process.wait2(pid).last.exitstatus + 1)
      end

      def restart
        if @run.plan.settings
          Headway.stop
          Thread.new { compute(5000) }.join
          Headway.start(**@run.plan.settings)
        end
        threads
      end
    end
  end
end
