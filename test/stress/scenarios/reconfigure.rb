# frozen_string_literal: true

module Stress
  module Scenarios
    # Headway stopped, started and changed while everything else goes on.
    class Reconfigure < Scenario
      def round
        change = pick(%i[stop_and_start policy quantum preempt restart_elsewhere])
        send(change)
        account(:changes, 1, 1)
        sleep rand(0.0..0.03)
      end

      # However it was left, the process ends with Headway at work.
      def finish
        Headway.start(**@run.plan.settings)
      end

      private

      def settings
        { policy: pick(@run.plan.policies), preempt: pick(@run.plan.preempts), quantum_ms: pick([1, 2, 5, 20, 100]) }
      end

      def stop_and_start
        @run.note_park_timeouts
        Headway.stop
        check(!Headway.started?, "started after stop")
        sleep rand(0.0..0.01)
        Headway.start(**settings)
        check(Headway.started?, "not started after start")
      end

      def restart_elsewhere = start_thread { stop_and_start }.join

      def policy
        Headway.policy = wanted = pick(@run.plan.policies)
        check_equal(wanted, Headway.policy, "policy")
      end

      def quantum
        Headway.quantum_ms = wanted = pick([1, 2, 5, 20, 100])
        check_equal(wanted, Headway.quantum_ms, "quantum_ms")
      end

      def preempt
        wanted = settings
        Headway.start(**wanted)
        check_equal(wanted[:preempt], Headway.preempt, "preempt")
      end
    end
  end
end
