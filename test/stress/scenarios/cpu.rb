# frozen_string_literal: true

module Stress
  module Scenarios
    # Threads that compute, in Ruby and in C code.
    class Cpu < Scenario
      def round
        jobs = Array.new(rand(1..3)) { [pick(%i[count sort text]), rand(20_000..400_000)] }
        done = values_of(jobs.map { |kind, size| start_thread { send(kind, size) } })
        account(:jobs, jobs.size, done.count(true))
      end

      private

      def count(size) = compute(size)

      def sort(size)
        numbers = (0...(size / 10)).to_a
        numbers.reverse.sort == numbers
      end

      def text(size)
        words = Array.new(size / 100) { |number| "word #{number}" }
        words.join(",").split(",") == words
      end
    end
  end
end
