# frozen_string_literal: true

module Stress
  module Scenarios
    # A bounded buffer made of a Mutex and two ConditionVariables.
    class Conditions < Scenario
      CAPACITY = 3

      def round
        @lock = Thread::Mutex.new
        @not_empty = Thread::ConditionVariable.new
        @not_full = Thread::ConditionVariable.new
        @buffer = []
        pairs = rand(1..3)
        count = rand(10..60)
        limit = pick([nil, 0.001])
        putting = Array.new(pairs) { |own| start_thread { count.times { |number| put([own, number], limit) } } }
        taking = Array.new(pairs) { start_thread { Array.new(count) { take(limit) } } }
        taken = values_of(taking).flatten(1)
        values_of(putting)
        check_equal(Array.new(pairs) { |own| Array.new(count) { |number| [own, number] } }.flatten(1), taken.sort, "buffer")
        account(:messages, pairs * count, taken.uniq.size)
      end

      private

      def put(item, limit)
        @lock.synchronize do
          @not_full.wait(@lock, limit) while @buffer.size >= CAPACITY
          @buffer << item
          @not_empty.signal
        end
        beat
      end

      def take(limit)
        @lock.synchronize do
          @not_empty.wait(@lock, limit) while @buffer.empty?
          @buffer.shift.tap { @not_full.broadcast }
        end
      end
    end
  end
end
