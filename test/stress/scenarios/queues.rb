# frozen_string_literal: true

module Stress
  module Scenarios
    # Messages of several producers through one queue to several consumers.
    class Queues < Scenario
      def round
        queue = pick([-> { Thread::Queue.new }, -> { Thread::SizedQueue.new(rand(1..4)) }]).call
        producers = rand(1..4)
        consumers = rand(1..4)
        count = rand(20..150)
        impatient = rand(2).zero?
        consuming = Array.new(consumers) { start_thread { consume(queue, impatient) } }
        producing = Array.new(producers) { |own| start_thread { count.times { |number| queue << [own, number]; beat } } }
        values_of(producing)
        queue.close
        judge(values_of(consuming), producers, count)
      end

      private

      def consume(queue, impatient)
        received = []
        loop do
          message = impatient ? queue.pop(timeout: 0.001) : queue.pop
          received << message if message
          break if message.nil? && queue.closed? && queue.empty?
        end
        received
      end

      def judge(received, producers, count)
        received.each do |messages|
          in_order = messages.group_by(&:first).values.all? { |own| own == own.sort }
          check(in_order, "a consumer got messages of one producer out of order")
        end
        expected = Array.new(producers) { |own| Array.new(count) { |number| [own, number] } }.flatten(1)
        check_equal(expected, received.flatten(1).sort, "messages of a queue")
        account(:messages, expected.size, received.flatten(1).uniq.size)
      end
    end
  end
end
