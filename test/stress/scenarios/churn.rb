# frozen_string_literal: true

module Stress
  module Scenarios
    # Threads by the dozen: they return, raise, leave early, have storage, and are joined, polled or asked.
    class Churn < Scenario
      class Deliberate < StandardError; end

      def round
        manners = Array.new(rand(5..40)) { pick(%i[return_value raise_error exit_early nap nested]) }
        threads = manners.each_with_index.map { |manner, number| start_thread { send(manner, number) } }
        ended = threads.zip(manners).each_with_index.count { |(thread, manner), number| outcome(thread) == expected(manner, number) }
        account(:threads, threads.size, ended)
      end

      private

      def outcome(thread)
        wait_until { thread.stop? || thread.join(0.01) } if rand(4).zero?
        thread.value
      rescue Deliberate => error
        error.message
      end

      def expected(manner, number)
        case manner
        when :raise_error then "error #{number}"
        when :exit_early then nil
        else number
        end
      end

      def return_value(number)
        Thread.current[:own] = number
        Thread.current.thread_variable_set(:own, number)
        Thread.pass
        Thread.current[:own] == Thread.current.thread_variable_get(:own) ? number : :mixed_up
      end

      def raise_error(number) = raise(Deliberate, "error #{number}")
      def exit_early(_number) = Thread.exit

      def nap(number)
        sleep 0.0005
        number
      end

      def nested(number) = Thread.new { compute(500) && number }.value
    end
  end
end
