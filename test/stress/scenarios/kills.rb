# frozen_string_literal: true

module Stress
  module Scenarios
    # Threads killed wherever they are: each ends, and runs its ensure clause once.
    class Kills < Scenario
      def round
        kinds = Array.new(rand(1..4)) { pick(PLACES) }
        entered = Thread::Queue.new
        ensured = Array.new(kinds.size, 0)
        threads = kinds.each_with_index.map { |kind, own| victim(place(kind), own, entered, ensured) }
        threads.size.times { entered.pop }
        sleep rand(0.0..0.003)
        threads.shuffle(random: @random).each(&:kill)
        threads.each(&:join)
        check(threads.none?(&:alive?), "a killed thread lives on")
        check_equal([1] * kinds.size, ensured, "ensure clauses of killed threads (#{kinds.join(",")})")
        account(:kills, kinds.size, threads.count { |thread| thread.status == false })
        kill_newborn
      end

      private

      def victim(blocked, own, entered, ensured)
        start_thread do
          entered << own
          blocked.call
        ensure
          ensured[own] += 1
        end
      end

      # One that may not even have begun.
      def kill_newborn
        thread = Thread.new { sleep }
        thread.kill
        thread.join
        account(:kills, 1, thread.status == false ? 1 : 0)
      end
    end
  end
end
