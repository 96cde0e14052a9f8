# frozen_string_literal: true

require "pathname"
require "harness/recorder_test"

# What goes wrong stops the recording, is said once, and leaves the program alone.
class RecorderTroubleTest < Harness::RecorderTest
  def test_an_unwritable_path
    run = program(<<~RUBY)
      p Headway.start(policy: :fair, record: "/nonexistent/out.headway"), Headway::Recorder.recording?, Headway.notices
      p Headway::Recorder.start(file: "/nonexistent/out.headway")
      p Headway::Recorder.start(file: "/nonexistent/out.headway", mode: :flight) # not only when it dumps
    RUBY
    assert run.success?, run
    assert_match(/\Atrue\nfalse\n\["recording is off: .*No such file or directory"\]\nfalse\nfalse\n\z/, run.out)
    assert_equal 1, run.err.lines.size, run.err
  end

  def test_a_path_that_is_too_long
    with_headway(:observe) do
      [:stream, :flight].each do |mode|
        _, err = capture_io { refute Headway::Recorder.start(file: file("#{"x/" * 2100}#{mode}"), mode: mode) }
        assert_match(/#{SystemCallError.new(Errno::ENAMETOOLONG::Errno).message}/, err)
        refute Headway::Recorder.recording?
      end
    end
  end

  def test_a_full_disk_at_the_start
    skip "no /dev/full here" unless File.writable?("/dev/full")
    with_headway(:observe) do
      _, err = capture_io { refute Headway::Recorder.start(file: "/dev/full") }
      assert_match(/No space left/, err)
      assert_match(/No space left/, Headway.notices.last)
    end
  end

  # What no longer fits is told of, and what was written before stays.
  def test_a_disk_that_is_full_by_the_time_of_a_dump
    run = program(<<~RUBY)
      Headway::Recorder.start(file: FILE, mode: :flight)
      Headway.mark("first")
      Headway::Recorder.dump
      trap("XFSZ", "IGNORE")
      Process.setrlimit(:FSIZE, 500, Process.getrlimit(:FSIZE).last)
      1000.times { Headway.mark("second") }
      Headway::Recorder.stop
    RUBY
    assert run.success?, run
    assert_equal "headway: no dump to #{file}: File too large\nheadway: the recording goes on: dump it to another file; the next stop ends it\n", run.err
    assert_equal [["out.headway"], ["first"]], [files, analysis[:marks].map { |mark| mark[:name] }]
  end

  # Until then all of it is in memory alone.
  def test_what_cannot_be_dumped_at_a_stop_is_kept_until_the_next
    run = program(<<~RUBY)
      $VERBOSE = nil
      Dir.mkdir(gone = FILE.sub("out", "gone"))
      Headway::Recorder.start(file: gone + "/out.headway", mode: :flight)
      Headway.mark("kept")
      Dir.rmdir(gone)
      p Headway::Recorder.stop, Headway::Recorder.recording?
      Headway::Recorder.dump(FILE)
      p Headway::Recorder.stop, Headway::Recorder.recording?, Headway::Recorder.stop
      Dir.mkdir(gone)
      Headway::Recorder.start(file: gone + "/out.headway", mode: :flight)
      Dir.rmdir(gone)
      p Headway::Recorder.start(mode: :flight), Headway::Recorder.stats[:file]
      Headway.stop
      p Headway::Recorder.recording?
    RUBY
    assert_equal %w[true true true false false true nil false], run.out.split, run
    assert_equal ["kept"], analysis[:marks].map { |mark| mark[:name] }
  end

  # As under ulimit -f: who writes first gets a signal that ends the program, be it that start, a dump or stop writes.
  def test_a_limit_of_files_sizes_ends_a_recording_and_not_the_program
    run = program(<<~RUBY)
      $VERBOSE = nil # what is said may go to a file, too
      most = Process.getrlimit(:FSIZE).last
      Headway.start(policy: :observe)
      Process.setrlimit(:FSIZE, 20, most)
      done = [Headway::Recorder.start(file: FILE)]
      Process.setrlimit(:FSIZE, 2000, most)
      done << Headway::Recorder.start(mode: :flight, file: FILE)
      1000.times { Headway.mark("many") }
      done << Headway::Recorder.stop << Headway::Recorder.stop << Headway::Recorder.start(file: FILE)
      1000.times { Headway.mark("many") }
      done << Headway::Recorder.stop
      Process.setrlimit(:FSIZE, most)
      p done, Headway.notices
    RUBY
    assert run.success?, run
    said = ["recording is off: #{file}", "no dump to #{file}", "recording stopped: #{file}"].map { |text| "#{text}: File too large" }
    said.insert(2, "the recording goes on: dump it to another file; the next stop ends it")
    assert_equal "[false, true, true, true, true, true]\n#{said.inspect}\n", run.out
  end

  # As when one command is recorded twice at a time: the file stays the first one's.
  def test_a_file_that_another_process_records_into
    run = program(<<~RUBY)
      Headway.start(policy: :observe, record: FILE)
      Headway.mark("first")
      pid = fork do
        Headway::Recorder.stop
        p Headway::Recorder.start(file: FILE), Headway::Recorder.start(mode: :flight)
        begin
          Headway::Recorder.dump(FILE)
        rescue Headway::Error => error
          puts error.message
        end
      end
      Process.wait(pid)
      Headway::Recorder.stop
      p Headway::Recorder.start(file: FILE) # its own it may write again
      Headway.mark("again")
    RUBY
    assert run.success?, run
    assert_equal "false\ntrue\nno dump to #{file}: another recording writes to it\ntrue\n", run.out
    assert_equal "headway: recording is off: #{file}: another recording writes to it\n", run.err
    assert_equal [nil, ["again"]], [analysis[:processes].first[:damage], analysis[:marks].map { |mark| mark[:name] }]
  end

  def test_a_file_that_is_deleted_meanwhile
    run = program(<<~RUBY)
      Headway.start(policy: :observe, record: FILE)
      Headway.mark("lost")
      File.delete(FILE)
      p Headway::Recorder.stop
    RUBY
    assert run.success?, run
    assert_equal ["true\n", "headway: recording stopped: #{file}: No such file or directory\n"], [run.out, run.err]
  end

  def test_a_pipe_nobody_reads_holds_nothing_up
    File.mkfifo(file)
    with_headway(:observe) do
      _, err = capture_io { refute Headway::Recorder.start(file: file) }
      assert_equal 1, err.lines.size, err
    end
  end

  # There is room for some whole blocks of events: what is cut off can't be read.
  def test_a_disk_that_fills_up
    run = program(<<~RUBY)
      trap("XFSZ", "IGNORE")
      Process.setrlimit(:FSIZE, 400_000, Process.getrlimit(:FSIZE).last)
      Headway.start(policy: :fair, record: FILE)
      thread = Thread.new { 50.times { sleep 0.001 } }
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 20
      while Headway::Recorder.recording? && Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
        Headway.mark("more and more") { 1000.times { Headway.mark("of it") } }
      end
      thread.join
      puts "recording: " + Headway::Recorder.recording?.to_s, Headway.notices
      Headway.mark("still works") { puts "working" }
      puts "again: " + Headway::Recorder.start(mode: :flight).to_s
    RUBY
    assert run.success?, run
    assert_match(/\Arecording: false\nrecording stopped: #{Regexp.escape(file)}: File too large\nworking\nagain: true\n\z/, run.out)
    assert_equal 1, run.err.scan("recording stopped").size, run.err
    assert_operator analysis[:processes].first[:events], :>, 0
  end

  def test_what_found_no_place_is_counted_and_written
    with_headway(:observe) do
      Headway::Recorder.start(file: file, events: 16)
      20_000.times { Headway.mark("flood") }
      dropped = Headway::Recorder.stats[:dropped]
      assert_operator dropped, :>, 0
      Headway::Recorder.stop
      process = analysis[:processes].first
      assert_operator process[:dropped], :>=, dropped
      assert_operator process[:events] + process[:dropped], :>=, 20_000
    end
  end

  def test_values_that_mean_nothing
    [{ events: 0 }, { events: 1.5 }, { events: 10**12 }, { mode: :tape }, { mode: :stream }, { wait_threshold: 0 },
     { seconds: 0 }, { seconds: "1" }, { file: "x", seconds: 1 },
     { wait_threshold: "1" }, { on_signal: "NOPE" }, { file: "x", wait_threshold: 1 }].each do |options|
      error = assert_raises(Headway::SettingError, options.inspect) { Headway::Recorder.start(**options) }
      assert_equal 1, error.message.lines.size
    end
    refute Headway::Recorder.recording?
  end

  def test_what_is_no_file_s_name
    Dir.mktmpdir do |directory|
      IO.pipe do |pipes|
        [$stdout.fileno, $stdin, STDOUT, *pipes, false, "a\0b", "x".encode("UTF-16LE")].each do |file|
          [-> { Headway::Recorder.start(file: file) }, -> { Headway::Recorder.dump(file) }].each do |record|
            error = Dir.chdir(directory) { assert_raises(Headway::SettingError, &record) }
            assert_equal "file is #{file.inspect}: give a file's name", error.message
          end
        end
      end
      assert_empty Dir.children(directory)
    end
  end

  def test_a_name_is_bytes
    Dir.mktmpdir do |directory|
      Headway::Recorder.start(file: File.join(directory, "\xff-%p"))
      Headway::Recorder.stop
      assert_equal ["\xff-#{Process.pid}".b], Dir.children(directory).map(&:b)
    end
  end

  def test_a_file_or_a_path_is_its_name
    File.open(file, "wb") do |io|
      [io, Pathname(file)].each { |one| assert_equal file, Headway::Recorder::FileName.resolve(one) }
    end
  end

  def test_a_dump_that_cannot_be
    error = assert_raises(Headway::Error) { Headway::Recorder.dump(file) }
    assert_match(/no flight recorder/, error.message)
    Headway::Recorder.start(mode: :flight)
    assert_raises(Headway::Error) { Headway::Recorder.dump("/nonexistent/dump.headway") }
    assert Headway::Recorder.recording?
  end
end
