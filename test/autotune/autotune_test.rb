# frozen_string_literal: true

require "test_helper"
require "autotune/plant"
require "harness/timing"

# Headway::Autotune in a running process. Whether its steps help is search_test's question.
class AutotuneTest < Minitest::Test
  include Harness::Timing

  FAST = { window: 0.04, windows: 5, samples: 20 }.freeze

  def setup
    skip Headway.unsupported_reason unless Headway.supported?
    @lines = Queue.new
  end

  def teardown
    @over = true
    @feeder&.join
    Headway.stop
    Headway.quantum_ms = 100
  end

  def test_it_moves_the_quantum_and_leaves_it_as_it_proved_best
    start(quantum_ms: 50..100)
    await("a step") { lines.grep(/autotune: quantum_ms 100 -> 50, to see what it does/).any? }
    await("its end") { current.history.any? }
    step = current.history.first
    assert_equal [:quantum_ms, 100, 50], [step.knob, step.from, step.to]
    assert_includes %i[kept reverted abandoned], step.outcome
    assert_operator step.before["Feed"][:per_s], :>, 0
    tuner = current
    assert Headway::Autotune.stop
    refute Headway::Autotune.stop
    assert_nil current
    assert_equal tuner.base[:quantum_ms], Headway.quantum_ms
  end

  def test_a_knob_of_ones_own_is_put_back_at_the_end
    dial = Autotuning::Dial.new(8, 4..8)
    tuner = start(quantum_ms: false, knobs: { workers: dial })
    await("a step") { dial.settings.include?(6) }
    Headway.stop
    assert_equal tuner.history.empty? ? 8 : tuner.base[:workers], dial.value # it may have ended by then
    refute_includes Thread.list.map(&:name), "headway autotune"
  end

  def test_of_two_that_are_started_at_once_one_stays_and_can_be_stopped
    here = Queue.new
    both = Queue.new
    dial = Autotuning::Dial.new(8, 4..8)
    dial.define_singleton_method(:value) { super().tap { Thread.current[:starts] && here.push(true) && both.pop } }
    Headway.start
    starters = Array.new(2) do
      Thread.new do
        Thread.current[:starts] = true
        Headway::Autotune.start(quantum_ms: false, knobs: { workers: dial }, log: ->(line) { @lines << line }, **FAST)
      end
    end
    2.times { here.pop }
    both.close
    starters.each(&:join)
    await("the other's end") { Thread.list.count { |thread| thread.name == "headway autotune" } == 1 }
    assert_predicate current, :running?
    assert Headway::Autotune.stop
    refute_includes Thread.list.map(&:name), "headway autotune"
  end

  def test_an_error_is_said_once_and_ends_it_and_nothing_else
    dial = Autotuning::Dial.new(8, 4..8)
    def dial.value=(value)
      super
      raise NotImplementedError, "the pool is gone" if value == 6
    end
    _, err = capture_io do
      tuner = start(quantum_ms: false, knobs: { workers: dial })
      await("the end") { !tuner.running? }
    end
    assert_match(/\Aheadway: autotune ended: the pool is gone \(NotImplementedError\) at .*autotune_test\.rb/, err)
    assert_equal 1, err.lines.size
    assert_equal 8, dial.value
    assert_predicate Headway, :started?
  end

  def test_a_broken_log_ends_it_too
    _, err = capture_io do
      Headway.start
      feed
      tuner = Headway::Autotune.start(**FAST, log: ->(_) { raise "disk full" })
      await("the end") { !tuner.running? }
    end
    assert_match(/autotune ended: disk full/, err)
    assert_equal 100, Headway.quantum_ms
  end

  # A handler that raised would leave undone what the program has it do next, such as telling a server to end.
  def test_a_signal_handler_stops_it_and_where_nothing_was_tuned_too
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      stopped = Queue.new
      trap("USR1") { stopped << Headway::Autotune.stop }
      Process.kill(:USR1, Process.pid)
      p stopped.pop
      Headway.start
      Headway::Autotune.start(log: ->(line) {})
      Process.kill(:USR1, Process.pid)
      p stopped.pop, Thread.list.size
    RUBY
    assert run.success?, run
    assert_equal "false\ntrue\n1\n", run.out
  end

  def test_too_little_work_moves_nothing
    Headway.start
    Headway::Autotune.start(**FAST, log: ->(line) { @lines << line })
    sleep 0.5
    assert_empty lines
    assert_equal 100, Headway.quantum_ms
  end

  def test_off_by_the_environment_and_without_headway
    assert_nil Headway::Autotune.start
    ENV["HEADWAY_AUTOTUNE"] = "0"
    Headway.start
    assert_nil Headway::Autotune.start
    ENV["HEADWAY_AUTOTUNE"] = "off"
    error = assert_raises(Headway::SettingError) { Headway::Autotune.start }
    assert_equal 'HEADWAY_AUTOTUNE is "off": give 0 or 1', error.message
  ensure
    ENV.delete("HEADWAY_AUTOTUNE")
  end

  def test_a_forked_child_goes_on_by_itself
    dial = Autotuning::Dial.new(8, 4..8)
    tuner = start(quantum_ms: false, knobs: { workers: dial })
    await("a step") { dial.settings.include?(6) }
    read, write = IO.pipe
    pid = fork do
      @over = false
      @feeder = nil
      feed
      await("a step of the child's") { dial.settings.drop_while { |value| value != 6 }.include?(8) && current.running? }
      await("its history") { current.history.any? }
      write.puts "ok #{current.equal?(tuner)} #{current.history.first.from}"
      exit!(0)
    end
    write.close
    assert_equal "ok true 8\n", read.gets
    assert_predicate tuner, :running?
  ensure
    read&.close
    Process.wait(pid) if pid
  end

  # Ruby doesn't call Process._fork for it.
  def test_a_daemon_goes_on_by_itself
    start(quantum_ms: false, knobs: { workers: Autotuning::Dial.new(8, 4..8) })
    read, write = IO.pipe
    pid = fork do
      Process.daemon(true, true)
      write.puts current.running?
    ensure
      exit!(0)
    end
    write.close
    assert_equal "true\n", read.gets
  ensure
    read&.close
    Process.wait(pid) if pid
  end

  def test_windows_in_which_the_machine_slept_count_for_nothing
    Headway.start
    feed
    tuner = Headway::Autotune.send(:new, **FAST, log: ->(line) { @lines << line })
    tuner.define_singleton_method(:now) { @at = (@at || 0) + 10 }
    tuner.run
    sleep 0.6
    assert_predicate tuner, :running?
    assert_empty lines
  ensure
    tuner&.stop
  end

  def test_values_that_mean_nothing
    range = Struct.new(:value, :range)
    { { window: 0 } => "window is 0: give seconds, such as 60",
      { windows: 2 } => "windows is 2: give a whole number from 5, such as 8",
      { samples: 1.5 } => "samples is 1.5: give a whole number from 20, such as 100",
      { quantum_ms: 0..5 } => "quantum_ms is 0..5: give a range of milliseconds, such as 10..200, or false to leave it alone",
      { quantum_ms: true } => "quantum_ms is true: give a range of milliseconds, such as 10..200, or false to leave it alone",
      { knobs: [1] } => "knobs is [1]: give a Hash of names and objects with value, value= and range",
      { knobs: { pool: 1 } } => "knob pool has no value, value=, range: give an object with value, value= and range",
      { knobs: { pool: range.new(1, 1..) } } => "knob pool has the range 1..: give one such as 1..16",
      { knobs: { quantum_ms: range.new(1, 1..2) } } => "knobs has quantum_ms, which Headway's own is called: give another name",
      { log: "x" } => 'log is "x": give a lambda',
      { quantum_ms: false } => "quantum_ms is false and there are no knobs: give something to tune",
      { thread: 1 } => "thread is no option of Headway::Autotune.start: give window, windows, samples, quantum_ms, knobs or log" }.each do |options, message|
      Headway.start
      assert_equal message, assert_raises(Headway::SettingError) { Headway::Autotune.start(**options) }.message
    end
    assert_nil current
  end

  private

  def current = Headway::Autotune.current

  def start(**options)
    Headway.start
    feed
    Headway::Autotune.start(**FAST, log: ->(line) { @lines << line }, **options)
  end

  # Works in plenty.
  def feed
    @feeder = Thread.new do
      until @over
        30.times { Headway::Work.start(:job, "Feed").finish }
        sleep 0.001
      end
    end
  end

  def lines = Array.new(@lines.size) { @lines.pop }.tap { |lines| lines.each { |line| @lines << line } }

  def await(what) = super(what, limit: 30, pause: 0.005, details: method(:lines))
end
