# frozen_string_literal: true

require "monitor"

module Stress
  module Scenarios
    # A Monitor entered again and again by its owner, and conditions on it: turns taken in order.
    class Monitors < Scenario
      def round
        threads = rand(2..4)
        turns = rand(3..10)
        monitor = Monitor.new
        changed = monitor.new_cond
        order = []
        values_of(Array.new(threads) do |own|
          start_thread do
            turns.times do
              monitor.synchronize do
                changed.wait_until { order.size % threads == own }
                monitor.synchronize { compute(500) && order << own }
                changed.broadcast
              end
              beat
            end
          end
        end)
        check_equal((0...threads).to_a * turns, order, "turns under a monitor")
        account(:turns, threads * turns, order.size)
      end
    end
  end
end
