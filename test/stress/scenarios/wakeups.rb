# frozen_string_literal: true

module Stress
  module Scenarios
    # Thread.stop, sleep, #wakeup and #run.
    class Wakeups < Scenario
      def round
        turns = rand(3..12)
        way = pick(%i[wakeup run])
        rest = pick([-> { Thread.stop }, -> { sleep }, -> { sleep 3600 }, -> { sleep 0.002 }])
        turn = -1
        taken = []
        thread = start_thread do
          turns.times do |number|
            rest.call until turn >= number
            compute(300)
            taken << number
          end
        end
        turns.times do |number|
          turn = number
          # One that comes before the thread rests is lost, by Ruby's own rules.
          until taken.size > number || !thread.alive?
            wake(thread, way)
            sleep 0.0005
          end
          beat
        end
        thread.join
        account(:wakeups, turns, taken.uniq.size)
      end

      private

      # It may end in between.
      def wake(thread, way)
        thread.public_send(way)
      rescue ThreadError
        raise if thread.alive?
      end
    end
  end
end
