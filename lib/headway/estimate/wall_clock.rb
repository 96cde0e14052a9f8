# frozen_string_literal: true

module Headway
  module Estimate
    # What two wall clocks say: the time of some calls by one thread, and by several that share them out.
    module WallClock
      # Work that gains less than this part of what is ideal is held back by the GVL.
      HELD_BACK = 0.8
      private_constant :HELD_BACK

      module_function

      # The gist's estimate: where the time lies between that of work that never yields and that of work that always does. Too high for
      # what lies between, since several threads' delays overlap: n threads gain all there is from 1 - 1/n on.
      #
      # @param threads [Integer] more than one
      # @param speedup [Float] calls a second against one thread's
      # @return [Float] from 0 to 1
      def gained(threads, speedup) = ((1 - (1 / speedup)) / (1 - (1.0 / threads))).clamp(0.0, 1.0)

      # The estimate without that error, by the asymptotic bounds of a closed network (Denning and Buzen, 1978): n threads' speed-up is
      # n, or what keeps the GVL busy, 1 / (1 - yield fraction), whichever is less. Near n it may be either: there it goes over to the
      # gist's.
      #
      # @return [Float] from 0 to 1
      def yield_fraction(threads, speedup)
        held_back = [1 - (1 / speedup), 0].max
        freedom = (((speedup / threads) - HELD_BACK) / (1 - HELD_BACK)).clamp(0, 1)
        held_back + (freedom * (gained(threads, speedup) - held_back))
      end
    end
  end
end
