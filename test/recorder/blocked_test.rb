# frozen_string_literal: true

require "harness/recorder_test"
require "harness/vm_fixture"
require "headway/report"
require "socket"

# Where marked work was blocked, or without any threads, when they didn't wait for the GVL.
class BlockedTest < Harness::RecorderTest
  LONG = 0.03 # seconds: from 10 ms on it is looked at

  # What the trace is to find.
  module Stalls
    def self.asleep = sleep(LONG)
    def self.at_a_lock(lock) = lock.synchronize { nil }
    def self.at_a_queue(queue) = queue.pop
    def self.at_a_condition(lock, condition) = lock.synchronize { condition.wait(lock, LONG) }
    def self.at_a_socket(socket) = socket.readpartial(1)
    def self.at_a_child = Process.wait(spawn("sleep #{LONG}"))
    def self.in_a_block = 1.times { asleep }
    def self.for_a_callback = VMFixture.wait_and_call_back(LONG) { called_back }
    def self.for_what_is_yielded = VMFixture.wait_and_yield(LONG) { called_back }
    def self.nested(depth, &block) = depth.zero? ? yield : nested(depth - 1, &block)
    def self.called_back = 10.times { Integer.sqrt(4) }
  end

  Harness::Modes::ALL.each_key do |mode|
    define_method("test_each_way_to_block_is_told_with_its_line_under_#{mode}") do
      work = recorded(mode) { block_in_each_way }.then { |trace| places(trace) }

      %w[asleep lock queue condition socket child].each do |name|
        where = name == "asleep" ? "asleep" : "at_a_#{name}"
        assert_equal [["Stalls.#{where}", __FILE__]], work.fetch(name).uniq, name
      end
      assert_equal [["Stalls.asleep", __FILE__]], work.fetch("deep")
      assert_nil work["brief"]
    end
  end

  def test_without_marks_it_is_told_of_threads
    lock, held = Mutex.new, Queue.new
    trace = recorded do
      holder = Thread.new { lock.synchronize { held << true; sleep 10 * LONG } }
      held.pop
      [*Array.new(3) { Thread.new { Stalls.at_a_lock(lock) } }, holder].each(&:join)
    end
    frames = trace[:blame][:frames]
    told = trace[:threads].map { |thread| thread[:blocked].map { |stack| place(frames.values_at(*stack[:frames]))&.first } }
    assert_equal 3, told.count(["Stalls.at_a_lock"]), told
    text, markdown = %i[text markdown].map { |form| StringIO.new.tap { |out| Headway::Report.public_send(form, Headway::Trace.open(file), out) }.string }
    assert_match(/3 threads were blocked at locks for \d+ % of the time, which no policy changes: 100 % of that in `BlockedTest::Stalls.at_a_lock` /, text)
    assert_match(/^  Where threads were blocked for .*, and how much of their time .*$/, text)
    [text, markdown].each { |said| assert_match(/ 3 threads(?:: | \| `)BlockedTest::Stalls.at_a_lock .* \(in Thread::Mutex#synchronize\)/, said) }
    trace = recorded { Headway.mark("work") { nil }; Thread.new { Stalls.asleep }.join }
    assert_empty trace[:threads].flat_map { |thread| thread[:blocked] }
  end

  # No interrupts are checked before what is called back: that isn't where it waited.
  def test_native_code_that_calls_back_is_told_not_what_it_calls
    trace = recorded do
      Headway.mark("callback") { Stalls.for_a_callback }
      Headway.mark("yielded") { Stalls.for_what_is_yielded }
      Headway.mark("deep") { Stalls.nested(100) { Stalls.for_a_callback } }
    end
    told = trace[:work].to_h { |row| [row[:name], row[:blocked].map { |stack| trace[:blame][:frames].values_at(*stack[:frames].first(2)).map { _1[:method] } }] }
    %w[callback deep].each { |name| assert_equal [["VMFixture.wait_and_call_back", "BlockedTest::Stalls.for_a_callback"]], told.fetch(name), name }
    assert_equal [["VMFixture.wait_and_yield", "BlockedTest::Stalls.for_what_is_yielded"]], told.fetch("yielded")
  end

  def test_a_flight_recorder_that_is_dumped_while_it_sleeps_knows_names
    with_headway(:observe) do
      Headway::Recorder.start(file: file, mode: :flight)
      Headway.mark("asleep") { Stalls.asleep }
      Headway::Recorder.dump
    end
    assert_equal [["Stalls.asleep", __FILE__]], places(analysis).fetch("asleep")
  end

  # The thread is back, and checks its interrupts, before the method returns: what that says must be the method's.
  def test_waits_that_time_out_say_so
    lock, condition, queue = Mutex.new, ConditionVariable.new, Queue.new
    sleeper = Thread.new { sleep }
    recorded do
      10.times do
        assert_nil queue.pop(timeout: LONG)
        assert_nil sleeper.join(LONG)
        assert_nil IO.select([IO.pipe.first], nil, nil, LONG)
        assert_nil lock.synchronize { lock.sleep(LONG) }
        refute lock.synchronize { condition.wait(lock, LONG) }
      end
    end
  ensure
    sleeper.kill.join
  end

  private

  def block_in_each_way
    lock, condition, queue = Mutex.new, ConditionVariable.new, Queue.new
    reader, writer = UNIXSocket.pair
    held = Queue.new
    holder = Thread.new { lock.synchronize { held << true; sleep LONG } }
    held.pop
    Headway.mark("lock") { Stalls.at_a_lock(lock) }
    later { queue << 1 }.then { |thread| Headway.mark("queue") { Stalls.at_a_queue(queue) }; thread.join }
    later { writer.write("x") }.then { |thread| Headway.mark("socket") { Stalls.at_a_socket(reader) }; thread.join }
    Headway.mark("condition") { Stalls.at_a_condition(lock, condition) }
    Headway.mark("child") { Stalls.at_a_child }
    Headway.mark("asleep") { Stalls.asleep }
    Headway.mark("deep") { Stalls.in_a_block }
    Headway.mark("brief") { nil }
    holder.join
  ensure
    [reader, writer].each { |io| io&.close }
  end

  def later = Thread.new { sleep LONG; yield }

  # Of each work that was blocked, the innermost methods of this file.
  def places(trace)
    frames = trace[:blame][:frames]
    trace[:work].to_h { |row| [row[:name], row[:blocked].map { |stack| place(frames.values_at(*stack[:frames])) }] }.reject { |_, places| places.empty? }
  end

  def place(frames)
    own = frames.find { |frame| frame[:file] == File.realpath(__FILE__) }
    own && [own[:method].sub(/\A(?:block.* in )?(?:BlockedTest::)?/, ""), own[:file]]
  end
end
