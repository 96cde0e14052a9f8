# frozen_string_literal: true

module Stress
  module Scenarios
    # Numbered exceptions raised in a thread, one at a time or in bursts: each must come out once, in order.
    class Raises < Scenario
      class Numbered < StandardError
        attr_reader :number

        def initialize(number)
          super("number #{number}")
          @number = number
        end
      end

      def round
        count = rand(3..8)
        burst = rand(2).zero?
        arrived = Thread::Queue.new
        target = start_thread_in(place(pick(burst ? PLAIN_PLACES : PLACES)), count, arrived)
        arrived.pop # it is there
        count.times do |number|
          target.raise(Numbered.new(number))
          arrived.pop unless burst
          beat
          sleep 0.0005 if burst && rand(3).zero?
        end
        got = target.value
        check_equal((0...count).to_a, got, "exceptions")
        account(:exceptions, count, got.uniq.size)
      end

      private

      # Exceptions strike only where the thread is blocked or busy, never where it notes them.
      def start_thread_in(blocked, count, arrived)
        start_thread do
          got = []
          Thread.handle_interrupt(Numbered => :never) do
            arrived << :ready
            while got.size < count
              begin
                Thread.handle_interrupt(Numbered => :immediate) { blocked.call }
              rescue Numbered => error
                got << error.number
                arrived << error.number
              end
            end
          end
          got
        end
      end
    end
  end
end
