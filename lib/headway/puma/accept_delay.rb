# frozen_string_literal: true

module Headway
  module Puma
    # In front of Puma::ClusterAcceptLoopDelay (from Puma 7.1 on), which has a busier worker of a cluster accept a little later, so that
    # another comes first.
    #
    # To that a worker is as busy as it has requests, whether they compute or wait. On stock Ruby one that computes leaves new
    # connections to others all the same, as its accepting thread waits for the GVL; with Headway that thread has it at once, and who
    # computes takes as much as who is idle. So it is to wait the longer the more threads compute; and after each wait it accepts freely
    # for as long, as what has come by then nobody else took: threads that compute for ever don't make it slow at accepting. Under the
    # other policies it is as late as on stock Ruby by itself.
    module AcceptDelay
      # The delay for each thread that computes, of Puma's longest one (wait_for_less_busy_worker, 5 ms unless configured): more than a
      # thread takes to be woken on a busy machine. And for how many of them at most.
      STEP = 0.4
      MOST = 5
      private_constant :STEP, :MOST

      # @param puma [Module] ::Puma
      # @return [void]
      def self.join(puma)
        return unless Headway.supported? && puma.const_defined?(:ClusterAcceptLoopDelay)

        puma::ClusterAcceptLoopDelay.prepend(self)
      end

      # @return [Float] seconds
      def calculate(*, **)
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        return super if now < (@headway_free_until ||= 0) || Headway.policy != :fair

        delay = max_delay * STEP * [Native.batch_ready, MOST].min
        @headway_free_until = now + (2 * delay)
        [super, delay].max
      end
    end
  end
end
