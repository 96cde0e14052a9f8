# frozen_string_literal: true

module Stress
  module Scenarios
    # Numbered exceptions raised in a thread, one at a time or all at once: each must come out once, in order.
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
        burst = rand(2).zero? && !beside_finalizers?
        arrived = Thread::Queue.new
        go = Thread::Queue.new
        target = start_thread_in(place(pick(burst ? PLAIN_PLACES : PLACES)), count, arrived, go)
        arrived.pop # it is there
        burst ? raise_all(target, count, go) : raise_each(target, count, arrived, go)
        got = target.value
        check_equal((0...count).to_a, got, "exceptions")
        account(:exceptions, count, got.uniq.size)
      end

      private

      # A finalizer that writes, on a thread where an exception unwinds, has the next pending one strike there: on stock Ruby, too.
      def beside_finalizers? = @run.plan.scenarios.include?("objects")

      # One that comes while another is about to be raised replaces that one, by Ruby's own rules; so these all wait
      # before the first can strike.
      def raise_all(target, count, go)
        count.times { |number| target.raise(Numbered.new(number)) }
        go << true
      end

      def raise_each(target, count, arrived, go)
        go << true
        count.times do |number|
          sleep rand(0.0..0.001) if rand(3).zero?
          target.raise(Numbered.new(number))
          arrived.pop
          beat
        end
      end

      # Exceptions strike only where the thread is blocked or busy, never where it notes them.
      def start_thread_in(blocked, count, arrived, go)
        start_thread do
          got = []
          Thread.handle_interrupt(Numbered => :never) do
            arrived << :ready
            go.pop
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
