# frozen_string_literal: true

require "harness/recorder_test"

# Mode flight: the last events, written when somebody or something asks.
class RecorderFlightTest < Harness::RecorderTest
  def test_a_dump_has_the_last_events_and_all_who_live
    with_headway(:observe) do
      Headway::Recorder.start(mode: :flight, events: 256)
      sleeper = Thread.new { Thread.current.name = "sleeper"; sleep }
      ended = Thread.new { Thread.current.name = "ended"; sleep 0.001 }
      ended.join
      1000.times { |number| Headway.mark("mark #{number}") }
      assert_equal file, Headway::Recorder.dump(file)
      assert Headway::Recorder.recording?
      sleeper.kill.join
      trace = analysis
      assert_nil trace[:processes].first[:damage]
      names = trace[:marks].map { |mark| mark[:name] }
      assert_equal "mark 999", names.last
      assert_in_delta 240, names.size, 16, "the rest of 256 are collections and switches"
      assert_equal "suspended", %w[running ready suspended].max_by { |state| thread_named("sleeper", from: trace)[:"#{state}_s"] }
    end
  end

  def test_a_dump_has_the_last_seconds
    with_headway(:observe) do
      Headway::Recorder.start(mode: :flight, seconds: 0.3)
      sleeper = Thread.new { Thread.current.name = "sleeper"; sleep }
      Headway.mark("old")
      sleep 0.4
      # Where the machine stops in between, it is no news any more.
      trace = await("the news") do
        Headway.mark("new")
        trace = Headway::Trace.open(Headway::Recorder.dump(file)).to_h
        trace if trace[:marks].any?
      end
      sleeper.kill.join
      assert_equal ["new"], trace[:marks].map { |mark| mark[:name] }.uniq
      assert_operator trace[:processes].first[:end_s] - trace[:processes].first[:start_s], :<=, 0.31
      assert_operator thread_named("sleeper", from: trace)[:suspended_s], :>, 0
    end
  end

  def test_it_dumps_to_its_file_at_the_end
    run = program("Headway.start; Headway::Recorder.start(file: FILE, mode: :flight); Headway.mark('last'); raise 'oops'")
    assert_equal 1, run.status.exitstatus
    assert_equal ["last"], analysis[:marks].map { |mark| mark[:name] }
  end

  def test_without_a_file_there_is_none
    run = program("Dir.chdir(File.dirname(FILE)); Headway.start; Headway::Recorder.start; Headway.mark('last')")
    assert run.success?, run
    assert_empty files
  end

  def test_on_a_signal
    run = program(<<~RUBY)
      seen = []
      trap("USR2") { seen << :before }
      Headway.start
      Headway::Recorder.start(file: FILE, mode: :flight, on_signal: :USR2)
      thread = Thread.new { 1_000_000.times { } }
      %w[signal-1 signal-2].each do |dump|
        Process.kill(:USR2, Process.pid)
        sleep 0.01 until File.exist?(FILE.delete_suffix("headway") + dump + ".headway")
      end
      thread.join
      Headway.stop
      Process.kill(:USR2, Process.pid)
      sleep 0.01 until seen.any?
      p seen
    RUBY
    assert run.success?, run
    assert_equal "[:before]\n", run.out
    assert_equal %w[out.headway out.signal-1.headway out.signal-2.headway], files
    files.each { |name| assert_nil analysis(file(name))[:processes].first[:damage] }
  end

  def test_a_handler_that_the_program_set_meanwhile_stays
    run = program(<<~RUBY)
      Headway::Recorder.start(file: FILE, mode: :flight, on_signal: "USR2")
      seen = []
      trap("USR2") { seen << :own }
      Headway::Recorder.start(file: FILE, mode: :flight)
      Headway::Recorder.stop
      Process.kill(:USR2, Process.pid)
      sleep 0.01 until seen.any?
      p seen
    RUBY
    assert_equal "[:own]\n", run.out, run
  end

  # A log that others write to, say, with a lock, which a signal's handler can't take.
  def test_a_dump_on_a_signal_that_fails_raises_nothing_whatever_stderr_is
    run = program(<<~RUBY)
      directory = FILE.delete_suffix("/out.headway") + "/gone"
      Dir.mkdir(directory)
      lock = Mutex.new
      $stderr = Object.new.tap { |log| log.define_singleton_method(:write) { |*texts| lock.synchronize { STDERR.write(*texts) } } }
      Headway::Recorder.start(file: directory + "/out.headway", mode: :flight, on_signal: "USR2")
      Dir.rmdir(directory)
      Process.kill(:USR2, Process.pid)
      sleep 0.01 until Headway.notices.any?
      puts Headway.notices
    RUBY
    assert_match(/\Ano dump to .*: No such file or directory\n\z/, run.out, run)
  end

  # Of such a one Ruby tells that it had no handler.
  def test_a_signal_that_was_ignored_is_ignored_afterwards
    run = program(<<~RUBY)
      trap("USR2", nil)
      Headway::Recorder.start(file: FILE, mode: :flight, on_signal: "USR2")
      Headway::Recorder.stop
      Process.kill(:USR2, Process.pid)
      p :lives
    RUBY
    assert run.success?, run
    assert_equal ":lives\n", run.out
  end

  # Not even for a moment, in which it might come.
  def test_a_stop_takes_no_signal_from_a_program_that_has_taken_it
    run = program(<<~RUBY)
      Headway::Recorder.start(file: FILE, mode: :flight, on_signal: "USR2")
      trap("USR2") { p :ours }
      Headway::Recorder::Alarm.singleton_class.prepend(Module.new { private def trap(*) = super.tap { Process.kill(:USR2, Process.pid) && sleep(0.01) } })
      Headway::Recorder.stop
      Process.kill(:USR2, Process.pid)
      sleep 0.01
      p :lives
    RUBY
    assert run.success?, run
    assert_match(/^:ours\n:lives\n\z/, run.out)
  end

  def test_a_signal_that_cannot_be_had_costs_nothing_but_the_dump_on_it
    %w[VTALRM KILL].each do |signal|
      run = program(<<~RUBY)
        p Headway::Recorder.start(file: FILE, mode: :flight, on_signal: #{signal.inspect}, wait_threshold: 5)
        p Headway::Recorder.stop, Headway::Recorder.recording?
      RUBY
      assert run.success?, run
      assert_equal "true\ntrue\nfalse\n", run.out
      assert_match(/\Aheadway: no dump on a signal: /, run.err)
      assert_includes files, "out.headway"
    end
  end

  def test_when_a_wait_takes_too_long
    with_headway(:observe) do
      before = Thread.list
      Headway::Recorder.start(file: file, mode: :flight, wait_threshold: 0.05)
      beside_cpu_threads(2) { await("a dump") { sleep(0.01) && files.include?("out.wait-1.headway") } }
      await("all of it") { analysis(file("out.wait-1.headway"))[:processes].first[:damage].nil? }
      assert_operator analysis(file("out.wait-1.headway"))[:threads].map { |thread| thread[:ready_s] }.max, :>=, 0.05
      Headway::Recorder.stop
      await("no thread of ours") { (Thread.list - before).empty? }
    end
  end

  def test_the_alarm_hides_no_deadlock
    run = program("Headway.start; Headway::Recorder.start(mode: :flight, wait_threshold: 1); Thread.new { Queue.new.pop }.join")
    assert_match(/No live threads left. Deadlock\?/, run.err)
  end

  def test_a_dump_under_load_disturbs_nobody
    with_headway(:fair_signal) do
      Headway::Recorder.start(mode: :flight, events: 5000)
      beside_cpu_threads(2) do
        beside_io_threads(4) do
          dumpers = Array.new(2) { |index| Thread.new { 10.times { Headway::Recorder.dump(file("#{index}.headway")) } } }
          dumpers.each(&:join)
        end
      end
    end
    assert_equal %w[0.headway 1.headway], files
    files.each { |name| assert_nil analysis(file(name))[:processes].first[:damage] }
  end
end
