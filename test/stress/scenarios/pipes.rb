# frozen_string_literal: true

module Stress
  module Scenarios
    # Numbered lines through pipes, one writer and one reader each.
    class Pipes < Scenario
      def round
        sizes = Array.new(rand(1..3)) { rand(10..200) }
        received = values_of(sizes.map { |size| start_thread { exchange(size) } })
        sizes.zip(received) { |size, lines| check_equal((0...size).to_a, lines, "lines of a pipe") }
        account(:messages, sizes.sum, received.sum(&:size))
      end

      private

      def exchange(size)
        reader, writer = IO.pipe
        writing = start_thread do
          size.times { |number| writer.puts(number.to_s.ljust(number * 7 % 500)) }
        ensure
          writer.close
        end
        lines = reader.each_line.map(&:to_i)
        writing.join
        lines
      ensure
        reader&.close
      end
    end
  end
end
