# frozen_string_literal: true

require_relative "window"

module Headway
  class Autotune
    # What windows of one setting say of the work itself: how long a work needs the GVL and how long it is suspended, not how long it
    # waits, and how much of it comes. Tells when it has become other work, if the setting is the same.
    class Signature
      # The suspended part of a work's time moved by so much, or the time was this many times longer or shorter.
      SHARE_MOVED = 0.15
      NEED_FACTOR = 1.5
      RATE_FACTOR = 2.0
      private_constant :SHARE_MOVED, :NEED_FACTOR, :RATE_FACTOR

      # @param windows [Array<Window>] of one setting
      def initialize(windows)
        count = windows.sum(&:count).to_f
        @running_s, @suspended_s = %i[running_s suspended_s].map do |part|
          windows.sum { |window| window.public_send(part) * window.count } / count
        end
        @per_s = count / windows.sum(&:seconds)
      end

      # @param window [Window]
      # @return [String, nil] what is other
      def departure(window)
        before, now = needs(@running_s, @suspended_s), needs(window.running_s, window.suspended_s)
        if (now.last - before.last).abs > SHARE_MOVED
          format("a work is suspended for %<now>d %% of its time, not %<before>d %%", now: 100 * now.last, before: 100 * before.last)
        elsif apart?(now.first, before.first, NEED_FACTOR)
          format("a work takes %<now>.4g ms without its waits, not %<before>.4g", now: 1000 * now.first, before: 1000 * before.first)
        elsif apart?(window.per_s, @per_s, RATE_FACTOR)
          format("%<now>.4g works come a second, not %<before>.4g", now: window.per_s, before: @per_s)
        end
      end

      private

      def needs(running_s, suspended_s)
        need_s = running_s + suspended_s
        [need_s, need_s.zero? ? 0.0 : suspended_s / need_s]
      end

      def apart?(now, before, factor) = now > before * factor || before > now * factor
    end
  end
end
