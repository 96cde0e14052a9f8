# frozen_string_literal: true

require "harness/recorder_test"

# Start and stop, many times and under load: nothing is left behind.
class RecorderLifecycleTest < Harness::RecorderTest
  test_under Harness::Modes::ALL.keys, "stop and start under load" do |mode|
    beside_cpu_threads(mode == :observe ? 0 : 2) do
      beside_io_threads(4, pause: 0.0005) do
        marker = Thread.new { loop { Headway.mark("round") { sleep 0.0002 } } }
        scale(10).times do |round|
          assert Headway::Recorder.start(file: file("#{round}.headway"), events: 10_000, mode: round.odd? ? :flight : :stream)
          sleep 0.01
          assert Headway::Recorder.stop
        end
        marker.kill.join
      end
    end
    files.each { |name| assert_nil analysis(file(name))[:processes].first[:damage], name }
  end

  def test_nothing_is_left
    with_headway(:observe) do
      sleep 0.01
      native, threads = native_thread_ids.size, Thread.list.size
      descriptors = Dir.children("/proc/self/fd").size
      20.times do |round|
        Headway::Recorder.start(file: file, mode: round.odd? ? :flight : :stream, wait_threshold: round.odd? ? 1 : nil)
        Headway::Recorder.stop
      end
      await("no thread of ours") { Thread.list.size == threads && native_thread_ids.size <= native + 1 }
      # What Headway does at its start, beside us, has some open for a moment, too: 20 rounds would leave 20.
      await("no descriptor of ours") { Dir.children("/proc/self/fd").size <= descriptors }
      refute Headway::Recorder.recording?
      before = Headway::Recorder.stats
      GC.start
      assert_equal before, Headway::Recorder.stats
    end
  end

  def test_headway_stop_stops_the_recorder
    Headway.start(policy: :observe, record: file)
    Headway.stop
    refute Headway::Recorder.recording?
    assert_nil analysis[:processes].first[:damage]
  end

  def test_it_starts_headway
    refute Headway.started?
    assert Headway::Recorder.start(file: file)
    assert_equal [true, :observe], [Headway.started?, Headway.policy]
    stats = Headway::Recorder.stats
    assert_equal [:stream, file], stats.values_at(:mode, :file)
  end

  def test_a_second_start_ends_the_first
    Headway::Recorder.start(file: file("1.headway"))
    Headway.mark("one")
    Headway::Recorder.start(file: file("2.headway"))
    Headway.mark("two")
    Headway.stop
    assert_equal [["one"], ["two"]], files.map { |name| analysis(file(name))[:marks].map { |mark| mark[:name] } }
  end

  def test_marks_and_stops_at_the_same_time
    with_headway(:fair_signal) do
      stop = false
      markers = Array.new(4) { Thread.new { Headway.mark("a") { Headway.mark("b") } until stop } }
      20.times do
        Headway::Recorder.start(file: file, events: 1000)
        stopped = Array.new(3) { Thread.new { Headway::Recorder.stop } }.map(&:value)
        assert_equal 1, stopped.count(true), stopped.inspect
        assert_nil analysis[:processes].first[:damage]
      end
      stop = true
      markers.each(&:join)
    end
  end
end
