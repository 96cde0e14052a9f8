# frozen_string_literal: true

module Stress
  module Scenarios
    # Fibers and external enumerators in several threads, each switching in the middle of its work.
    class Fibers < Scenario
      def round
        threads = rand(1..3)
        steps = rand(20..200)
        manners = Array.new(threads) { pick(%i[enumerate resume storage many]) }
        results = values_of(manners.map { |manner| start_thread { send(manner, steps) } })
        results.each { |result| check_equal((0...steps).to_a, result, "steps of a fiber") }
        account(:fiber_steps, threads * steps, results.sum(&:size))
      end

      private

      def enumerate(steps)
        endless = Enumerator.new { |out| (0..).each { |number| compute(100) && out << number } }
        Array.new(steps) { endless.next }
      end

      def resume(steps)
        fiber = Fiber.new do |number|
          loop { number = Fiber.yield(compute(100) && number) }
        end
        Array.new(steps) { |number| fiber.resume(number) }
      end

      def storage(steps)
        Array.new(steps) do |number|
          Fiber.new(storage: { own: number }) { Thread.pass; compute(50) && Fiber[:own] }.resume
        end
      end

      def many(steps)
        fibers = Array.new(steps) { |number| Fiber.new { Fiber.yield; sleep 0.0001 if number % 20 == 0; number } }
        fibers.each(&:resume).map(&:resume)
      end
    end
  end
end
