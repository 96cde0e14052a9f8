# frozen_string_literal: true

module Headway
  module Integrations
    # How long ago something was, as those who queue requests and jobs tell it: since 1970, each in a unit of its own.
    module Since
      # From so many on it is milliseconds, microseconds, nanoseconds; of seconds that many are the year 5138.
      UNITS = { 1e17 => 1e9, 1e14 => 1e6, 1e11 => 1e3 }.freeze
      private_constant :UNITS

      # @param at [Numeric]
      # @return [Float, nil] seconds, below 0 where clocks don't agree; nil: it is no time
      def self.seconds(at)
        _, per_second = UNITS.find { |from, _| at >= from }
        seconds = ::Process.clock_gettime(::Process::CLOCK_REALTIME) - at / (per_second || 1)
        seconds if seconds.finite?
      end
    end
  end
end
