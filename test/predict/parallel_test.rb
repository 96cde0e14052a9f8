# frozen_string_literal: true

require "test_helper"
require "headway/predict"

class ParallelTest < Minitest::Test
  def test_results_are_in_the_order_of_the_items
    assert_equal (0...50).map { |i| i * i }, Headway::Predict::Parallel.map((0...50).to_a) { |i| sleep(0.001 * (i % 3)) && i * i }
    assert_empty Headway::Predict::Parallel.map([]) { flunk }
  end

  def test_what_is_raised_ends_it
    done = Queue.new
    error = assert_raises(IOError) do
      Headway::Predict::Parallel.map((0...500).to_a) { |i| i == 3 ? raise(IOError, "at #{i}") : sleep(0.01) && done << i }
    end

    assert_equal "at 3", error.message
    assert_operator done.size, :<, 100
  end
end
