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

  # It is called under a mask, which the fibers of an event loop share.
  def test_who_ends_a_work_waits_for_nobody_and_it_counts_all_the_same
    collector = Headway::Autotune::Collector.new
    lock = collector.instance_variable_get(:@lock)
    adding = lock.synchronize do
      Thread.new { 3.times { collector.add(Headway::Work.start(:request, "GET /").tap(&:finish)) } }.tap { |thread| assert thread.join(20) }
    end
    refute_predicate adding, :alive?
    Array.new(8) { Thread.new { 500.times { collector.add(Headway::Work.start(:request, "GET /").tap(&:finish)) } } }.each(&:join)
    assert_equal 4003, collector.close.count
  end
end
