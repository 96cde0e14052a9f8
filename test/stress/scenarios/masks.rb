# frozen_string_literal: true

module Stress
  module Scenarios
    # Thread.handle_interrupt: what is masked waits, what waits comes, and comes once.
    class Masks < Scenario
      class Masked < StandardError; end
      class Unmasked < StandardError; end

      def round
        blocked = place(pick(%i[sleep queue pipe condition naps]))
        mode = pick(%i[never on_blocking])
        log = []
        steps = Thread::Queue.new
        release = Thread::Queue.new
        thread = start_thread { send(mode, log, steps, release, blocked) }
        steps.pop
        thread.raise(Masked)
        beat
        release << true
        check_equal(expected(mode), thread.value, "interrupts under #{mode}")
        account(:exceptions, 1, log.count(:masked))
        killed_under_mask
      end

      private

      def expected(mode) = mode == :never ? %i[worked masked after] : %i[masked after]

      # Deferred to the end of the block, whatever the block does.
      def never(log, steps, release, _blocked)
        begin
          Thread.handle_interrupt(Masked => :never) do
            steps << :in
            release.pop
            compute(2000)
            sleep 0.001
            Thread.pass until Thread.pending_interrupt?(Masked)
            log << :worked
          end
          log << :lost
        rescue Masked
          log << :masked
        end
        log << :after
      end

      # Deferred only until the thread blocks.
      def on_blocking(log, steps, _release, blocked)
        begin
          Thread.handle_interrupt(Masked => :on_blocking) do
            Thread.handle_interrupt(Masked => :never) { steps << :in }
            compute(2000)
            blocked.call
            log << :lost
          end
        rescue Masked
          log << :masked
        end
        log << :after
      end

      # Cleaning up is not cut short by a kill.
      def killed_under_mask
        steps = Thread::Queue.new
        cleaned = 0
        thread = start_thread do
          Thread.handle_interrupt(Object => :never) do
            steps << :in
            compute(3000)
            sleep 0.001
            cleaned += 1
          end
          sleep
        end
        steps.pop
        thread.kill.join
        check_equal(1, cleaned, "cleaning up under a kill")
        account(:kills, 1, thread.alive? ? 0 : 1)
      end
    end
  end
end
