# frozen_string_literal: true

require "timeout"

module Stress
  module Scenarios
    # Timeouts that expire wherever the thread is then, and some that must not.
    class Timeouts < Scenario
      class Expired < StandardError; end

      def round
        jobs = Array.new(rand(1..4)) { [pick(PLACES), rand(0.0005..0.02), pick(%i[own plain nested idle])] }
        expired = values_of(jobs.map { |kind, seconds, manner| start_thread { send(manner, seconds, place(kind)) } })
        account(:timeouts, jobs.size, expired.count(true))
      end

      private

      def own(seconds, blocked)
        Timeout.timeout(seconds, Expired) { blocked.call }
        false
      rescue Expired
        aftermath
      end

      def plain(seconds, blocked)
        Timeout.timeout(seconds) { blocked.call }
        false
      rescue Timeout::Error
        aftermath
      end

      # The inner one expires; the outer one must not.
      def nested(seconds, blocked)
        Timeout.timeout(3600, NotImplementedError) { own(seconds, blocked) } && aftermath
      end

      def idle(_seconds, _blocked)
        Timeout.timeout(3600) { compute(10_000) } && aftermath
      end

      # Nothing may arrive late.
      def aftermath
        sleep 0.001
        compute(1000)
      end
    end
  end
end
