# frozen_string_literal: true

require "test_helper"
require "headway"
require "headway/work"
require "headway/rails/active_jobs"
require "harness/timing"

class GuardTest < Minitest::Test
  include Harness::Timing

  Guard = Headway::Integrations::Guard

  def test_what_others_raise_meanwhile_comes_after_a_masked_part
    inside = Queue.new
    ended = false
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Guard.masked("a test") do
        inside << true
        sleep 0.001 until Thread.pending_interrupt?
        ended = true
      end
    end
    inside.pop
    thread.raise(ArgumentError, "from outside")
    assert_equal "from outside", assert_raises(ArgumentError) { thread.join }.message
    assert ended
  end

  def test_a_fault_of_ours_is_noted_and_what_others_raised_comes_after_it
    name = "a test of #{__method__}"
    inside = Queue.new
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Guard.masked(name) do
        inside << true
        sleep 0.001 until Thread.pending_interrupt?
        raise "ours"
      end
    end
    inside.pop
    thread.raise(ArgumentError, "from outside")
    capture_io { assert_equal "from outside", assert_raises(ArgumentError) { thread.join }.message }
    assert_match(/#{name} failed and was left out: ours/, Headway.notices.last)
  end

  def test_a_fault_may_say_anything
    [nil, :text, { "a" => 1 }, "Fluß".encode("UTF-16LE"), "\xff".b, "\xff", ""].each_with_index do |message, number|
      fault = Class.new(StandardError) { define_method(:message) { message } }
      name = "a test of #{__method__} #{number}"
      capture_io { assert_nil Guard.guard(name) { raise fault } }
      assert_match(/\A#{name} failed and was left out: /, Headway.notices.last.scrub)
    end
  end

  # A path has the bytes that its file system has; and a message that is computed may fail as all else.
  def test_a_fault_may_come_from_anywhere
    fault = RuntimeError.new("Fluß")
    fault.set_backtrace(["/caf\xC3\xA9/a.rb:1".b])
    raising = Class.new(StandardError) { define_method(:message) { raise NotImplementedError } }.new
    raising.set_backtrace(["b.rb:2"])
    { "one" => fault, "another" => raising }.each do |name, error|
      capture_io { assert_nil Guard.masked("a test of #{__method__}, #{name}") { raise error } }
    end
    assert_match(/, one failed and was left out: Fluß \(RuntimeError\) at \/caf\uFFFD\uFFFD\/a\.rb:1\z/, Headway.notices[-2])
    assert_match(/, another failed and was left out: its message raises NotImplementedError \(#<Class.*\) at b\.rb:2\z/, Headway.notices.last)
  end

  # As test suites do that have warnings raise.
  def test_what_a_program_makes_of_warnings_strikes_nobody
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      def Warning.warn(*, **) = raise("a warning")
      Headway.start(policy: :observe)
      Headway::Work.subscribe { raise "a broken subscriber" }
      work = Headway::Work.start(:job, "a test")
      p Headway::Integrations::Guard.masked("a part") { raise "a fault" }
      work.finish
      status, _, body = Headway::Rack.new(->(env) { [204, {}, []] }, route: ->(_) { raise "a broken route" }).call({})
      body.close
      p status, Headway.notices.size
    RUBY
    assert_equal "nil\n204\n3\n", run.out, run
    assert_equal 3, run.err.lines.grep(/\Aheadway: .* failed and was left out: a /).size
  end

  def test_it_returns_what_the_block_does
    assert_equal [:guarded, :masked], [Guard.guard("a test") { :guarded }, Guard.masked("a test") { :masked }]
    capture_io { assert_nil Guard.masked("a test of #{__method__}") { raise "ours" } }
  end

  def test_what_others_raise_while_headway_counts_a_work_is_not_taken_for_its_fault
    inside = Queue.new
    block = Headway::Work.subscribe_masked do
      inside << true
      sleep 0.001 until Thread.pending_interrupt?
    end
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Headway::Work.start(:job, "a test").finish
      flunk "it goes on"
    end
    inside.pop
    thread.raise(ArgumentError, "from outside")
    assert_equal "from outside", assert_raises(ArgumentError) { thread.join }.message
  ensure
    Headway::Work.unsubscribe(block)
  end

  # A subscriber may start a thread, such as one that reports: it must not inherit a mask.
  def test_what_a_subscriber_starts_can_be_ended
    reporter = nil
    block = Headway::Work.subscribe { reporter ||= Thread.new { sleep } }
    Headway.start(policy: :observe)
    job { "default" }.perform_now
    assert reporter.kill.join(patience(10))
  ensure
    Headway.stop
    Headway::Work.unsubscribe(block)
  end

  def test_a_job_that_is_struck_before_it_begins_is_not_what_its_thread_is_at_for_good
    inside = Queue.new
    late = job { inside << true; sleep 0.001 until Thread.pending_interrupt?; "default" }
    Headway.start(policy: :observe)
    thread = Thread.new do
      late.perform_now
    rescue ArgumentError
      Headway::Work.current
    end
    inside.pop
    thread.raise(ArgumentError, "from outside")
    assert_nil thread.value
  ensure
    Headway.stop
  end

  def test_a_work_that_nobody_finished_ends_with_the_one_it_was_begun_in
    request = Headway::Work.start(:request, "outer")
    2.times { Headway::Work.start(:job, "left") }
    request.finish
    assert_nil Headway::Work.current
  end

  private

  # One of Active Job's, as far as Headway asks it.
  def job(&queue)
    Class.new do
      define_method(:queue_name, &queue)
      def perform_now = nil
      def enqueued_at = nil
      def scheduled_at = nil
      prepend Headway::Rails::ActiveJobs
    end.new
  end
end
