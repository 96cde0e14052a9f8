# frozen_string_literal: true

require "test_helper"

# What Headway knows of objects that are the program's to keep: those that are gone are not called. Ruby 4.0.0's WeakMap has them still,
# where they were young and it was old.
class WeakMapsTest < Minitest::Test
  # @param make [String] code that makes one
  # @param call [String] code that has all there are called
  def assert_calls_none_that_is_gone(make, call)
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      GC.disable # but where it is asked for
      2.times { GC.start }
      kept = Array.new(50) { #{make} }
      GC.start
      kept.clear
      GC.start(full_mark: false)
      #{call}
      puts "done"
    RUBY
    assert_equal "done\n", run.out, run
  end

  def test_what_has_threads_of_its_own_in_a_forked_child
    assert_calls_none_that_is_gone("Headway::OffloadPool.new", "Process.wait(fork { exit!(0) }); abort $?.inspect unless $?.success?")
  end

  def test_watches_of_event_loops
    assert_calls_none_that_is_gone("Headway::Native::LoopWatch.new(Thread.current, 1_000_000)", <<~RUBY)
      watch = Headway::Native::LoopWatch.new(Thread.current, 1_000_000)
      watch.turn
      stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.2
      nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
      abort "not seen" unless watch.idle&.last
    RUBY
  end
end
