# frozen_string_literal: true

require "harness/recorder_test"
require "timeout"

# Headway.mark: spans and instants of the program's own.
class RecorderMarkTest < Harness::RecorderTest
  def test_marks_nest
    trace = recorded do
      value = Headway.mark("outer") do
        Headway.mark(:inner) { sleep 0.002 }
        Headway.mark("instant")
        42
      end
      assert_equal 42, value
    end
    marks = trace[:marks].to_h { |mark| [mark[:name], mark] }
    assert_equal %w[inner instant outer], marks.keys.sort
    outer, inner, instant = marks.values_at("outer", "inner", "instant")
    assert_nil instant[:end_s]
    assert_operator outer[:start_s], :<=, inner[:start_s]
    assert_operator inner[:end_s], :<=, instant[:start_s]
    assert_operator instant[:start_s], :<=, outer[:end_s]
    assert_operator inner[:end_s] - inner[:start_s], :>=, 0.0015
  end

  def test_an_exception_a_throw_and_a_break_pass_and_end_the_span
    trace = recorded do
      assert_raises(KeyError) { Headway.mark("raises") { {}.fetch(:missing) } }
      assert_equal 1, catch(:out) { Headway.mark("throws") { throw :out, 1 } }
      assert_equal 2, Headway.mark("breaks") { break 2 }
      thread = Thread.new { Headway.mark("killed") { sleep } }
      Thread.pass until thread.stop?
      thread.kill.join
    end
    assert_equal %w[breaks killed raises throws], trace[:marks].map { |mark| mark[:name] }.sort
    trace[:marks].each { |mark| refute_nil mark[:end_s], mark[:name] }
  end

  def test_any_name_will_do
    spiteful = Object.new
    def spiteful.to_s = raise("no name")
    trace = recorded do
      ["", "ä\u0000\n", "x" * 5000, :symbol, 17, nil, spiteful, "\xff".b].each { |name| Headway.mark(name) }
    end
    assert_equal 8, trace[:marks].size
    assert_includes trace[:marks].map { |mark| mark[:name] }, "17"
  end

  def test_what_comes_while_a_name_is_asked_for_is_not_taken_for_its_fault
    slow = Object.new
    def slow.to_s = "slow".tap { sleep 0.05 }
    leaving = Object.new
    def leaving.to_s = throw(:out, 1)
    recorded do
      assert_raises(Timeout::Error) { Timeout.timeout(0.01) { Headway.mark(slow) { sleep } } }
      struck, killed = Array.new(2) { Thread.new { Headway.mark(slow) { sleep } } }.each { _1.report_on_exception = false }
      sleep 0.01
      struck.raise(IOError)
      assert_raises(IOError) { struck.join(patience(5)) }
      assert killed.kill.join(patience(5)), "it goes on"
      assert_equal 1, catch(:out) { Headway.mark(leaving) }
    end
  end

  def test_names_are_bounded
    trace = recorded { 10_000.times { |number| Headway.mark("request #{number}") } }
    names = trace[:marks].map { |mark| mark[:name] }
    assert_equal 10_000, names.size
    assert_operator names.count("(others)"), :>, 1000
    assert_operator names.uniq.size, :>, 1000
  end

  # A query's text, say. What held the GVL would have no name for the life of the process.
  def test_long_names_leave_room_for_those_of_methods
    recorded(:fair_signal) do
      [900, 9].each { |size| 2_000.times { |number| Headway.mark("#{number} #{"x" * size}") } }
      beside_io_threads(1) { 20.times { Thread.new { grind }.join } }
      frames = Headway.stats[:blame][:stacks].flat_map { |stack| stack[:frames].map { |frame| frame[:method] } }
      assert_includes frames, "RecorderMarkTest#grind"
    end
  end

  def grind = compute(0.02)

  def test_nothing_happens_when_nothing_records
    assert_equal 1, Headway.mark("off") { 1 }
    assert_nil Headway.mark("off")
    with_headway { assert_equal 2, Headway.mark(BasicObject) { 2 } }
    assert_raises(ArgumentError) { Headway.mark }
  end

  def test_in_another_ractor_it_only_runs_the_block
    run = program(<<~RUBY)
      Warning[:experimental] = false
      Headway.start(record: FILE)
      ractor = Ractor.new { Headway.mark("elsewhere") { 42 } }
      p ractor.respond_to?(:value) ? ractor.value : ractor.take
    RUBY
    assert_equal "42\n", run.out, run
    assert_empty analysis[:marks]
  end

  def test_a_span_across_a_start_or_a_stop
    with_headway(:observe) do
      Headway.mark("before") { Headway::Recorder.start(file: file) }
      Headway.mark("after") { Headway::Recorder.stop }
    end
    assert_equal ["after"], analysis[:marks].map { |mark| mark[:name] }
  end
end
