# frozen_string_literal: true

require "harness/isolated_test"
require "headway"
require "headway/autotune"

# Each in a process of its own: work that is done takes classes of the process's metrics, too.
class AutotuneCollectorTest < Harness::IsolatedTest
  # Else a class would seem to have vanished because of the step when others only came before it.
  def test_of_more_classes_than_are_kept_apart_the_same_are_in_each_window
    collector = Headway::Autotune::Collector.new
    names = (1..80).map { |i| "GET /#{i}" }
    first, second, third = [names, names.reverse, names.last(20)].map do |order|
      order.each { |name| collector.add(Headway::Work.start(:request, name).tap(&:finish)) }
      collector.close
    end
    assert_equal [51, 30], [first.classes.size, first.classes["(others)"].count]
    assert_equal first.classes.keys.sort, second.classes.keys.sort
    assert_equal 20, third.count
    collector.add(Headway::Work.start(:request, "GET /80").tap(&:finish))
    assert_equal ["GET /80"], collector.close.classes.keys, "there is room again"
  end
end
