# frozen_string_literal: true

require "test_helper"

# Headway.batch and Headway.interactive: which class a thread has, in them and after them.
class ClassBlocksTest < Minitest::Test
  # Where no block gives a class, who has computed counts as batch, too, until it has slept; so does who just had the GVL while the machine
  # took its processor: what a block gives is there each time one looks.
  SEEN = "seen = []\nbatch = -> { 10.times.all? { sleep 0.05; Headway.thread.batch? } }\nlook = -> { seen << batch.() }\n"

  def test_the_innermost_block_counts
    assert_equal [true, false, true, false, true, false], seen(<<~RUBY)
      Headway.batch do
        look.()
        Headway.interactive { look.(); Headway.batch(&look); look.() }
        look.()
      end
      look.()
    RUBY
  end

  def test_whatever_a_block_is_left_by_it_is_over
    assert_equal [false, false, false, false], seen(<<~RUBY)
      Headway.batch { raise "x" } rescue look.()
      catch(:out) { Headway.batch { throw :out } }
      look.()
      -> { Headway.batch { return } }.()
      look.()
      thread = Thread.new { Headway.batch { sleep } }
      Thread.pass until thread.stop?
      thread.kill.join
      look.()
    RUBY
  end

  # Who enters gives way at once, and is woken by what strikes: that may be before the block has begun.
  def test_what_strikes_as_a_block_begins_leaves_nothing
    assert_equal [false], seen(<<~RUBY)
      require "timeout"
      3.times { Thread.new { loop { sleep 0.0006 } } }
      Thread.new { loop { nil } }
      Thread.new do
        100.times do
          Timeout.timeout(0.01) { loop { Headway.batch { nil } } }
        rescue Timeout::Error
          nil
        end
        look.()
      end.join
    RUBY
  end

  def test_blocks_of_several_fibers_end_in_any_order
    assert_equal [true, false, false, false], seen(<<~RUBY)
      fibers = %i[batch interactive].map { |name| Fiber.new { Headway.public_send(name) { Fiber.yield } } }
      fibers.each { |fiber| fiber.resume; look.() }
      fibers.each { |fiber| fiber.resume; look.() }
    RUBY
  end

  def test_when_the_inner_one_of_two_fibers_ends_the_other_counts_again
    assert_equal [true, false], seen(<<~RUBY)
      fibers = %i[batch interactive].map { |name| Fiber.new { Headway.public_send(name) { Fiber.yield } } }
      fibers.each(&:resume).reverse_each { |fiber| fiber.resume; look.() }
    RUBY
  end

  # Of some a trace stays on the stack, which the collector takes for a use.
  def test_the_block_of_a_fiber_that_is_dropped_within_it_is_over_once_it_is_collected
    before, after = seen(<<~RUBY)
      def drop = (Fiber.new { Headway.batch { Fiber.yield } }.resume; nil)
      def use_stack(depth) = depth.zero? ? nil : [depth].each { use_stack(depth - 1) }
      seen.replace(Array.new(20) do
        Thread.new do
          drop
          before = Headway.thread.batch?
          5.times { use_stack(100); Fiber.new { nil }.resume; GC.start }
          [before, batch.()]
        end.value
      end.transpose)
    RUBY
    assert_equal 20, before.count(true)
    assert_operator after.count(true), :<, 10
  end

  # What stands for a block outlives its thread here, as where the collector sweeps that one first: another thread gets its address.
  def test_a_new_thread_has_nothing_of_one_that_ended_in_a_block
    assert_equal [200, 0], seen(<<~RUBY)
      require "objspace"
      blocks = []
      end_in_a_block = lambda do
        fiber = Fiber.new { Headway.batch { Fiber.yield } }
        fiber.resume
        hidden = ObjectSpace.reachable_objects_from(fiber).grep(ObjectSpace::InternalObjectWrapper)
        blocks.concat(hidden.select { |object| object.type == :T_DATA }) # and what else the VM left on the stack
        nil
      end
      200.times { Thread.new(&end_in_a_block).join }
      GC.start
      kept = ObjectSpace.count_tdata_objects[:"Headway::Native/class_block"]
      threads = Array.new(300) { Thread.new { Headway.interactive { nil }; batch.() } }
      seen << kept << threads.count(&:value)
    RUBY
  end

  def test_without_headway_the_block_is_called
    assert_equal [1, 2], seen("Headway.stop; seen << Headway.batch { 1 } << Headway.interactive { 2 }")
  end

  private

  # @return [Array] what the code has seen, in a process of its own
  def seen(code)
    result = Harness::RubyProcess.eval("require 'headway'\nHeadway.start\n#{SEEN}#{code}\np seen")
    assert_predicate result, :success?, result
    assert_empty result.err
    eval(result.out) # rubocop:disable Security/Eval
  end
end
