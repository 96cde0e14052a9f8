# frozen_string_literal: true

require "control/controlled_process"
require "headway/trace"
require "harness/vm_fixture"

# Recordings that are started and stopped from outside, through the control socket.
class ControlRecordTest < Minitest::Test
  include ControlledProcesses

  WORKING = <<~RUBY
    class Worker
      def crunch = 20_000.times { |number| number.to_s }
    end
    threads = 2.times.map { |index| Thread.new { Worker.new.crunch while true }.tap { |thread| thread.name = "worker-\#{index}" } }
    Thread.new { sleep 0.002 while true }.name = "a napper with quite a long name"
    ready
    sleep
  RUBY

  def test_a_recording_of_a_working_process
    pid = program(WORKING).pid
    said = record(pid, "start", file)
    assert_quiet_success said
    assert_match(/\Amode     stream\nfile     #{file}\nevents   \d+\ndropped  0\nbytes    \d+\n\z/, said.out)
    assert_match(/\Amode     stream\n/, cli("ctl", pid, "get", "recorder").out)
    assert_bad_usage(/a recording is under way in this process: stop it first/, record(pid, "start", other))
    refute_path_exists other
    crunched = -> { stats(@programs.last.socket)[:blame][:lines].sum { |line| line[:method].to_s.include?("Worker#crunch") ? line[:weight] : 0 } }
    before = crunched.call
    await("blame") { crunched.call > before + 0.2 }
    stopped = JSON.parse(cli("ctl", pid, "record", "stop", "--json").out)["recorder"]
    assert_equal ["stream", file, 0], stopped.values_at("mode", "file", "dropped")
    trace = trace(file)
    assert_equal stopped["events"], trace[:processes].first[:events]
    assert_operator (trace[:threads].map { |thread| thread[:name] } & ["main", "worker-0", "worker-1", "a napper with quite a"]).size,
                    :>=, 3
    assert_includes trace[:blame][:frames].map { |frame| frame[:method] }, "Worker#crunch"
    assert_bad_usage(/nothing is recorded in this process/, record(pid, "stop"))
    assert_equal "nothing is recorded\n", cli("ctl", pid, "get", "recorder").out
    assert_bad_usage(/no recording to #{file}: File exists/, record(pid, "start", file))
    assert_bad_usage(%r{no recording to /nonexistent/x: No such file or directory}, record(pid, "start", "--mode", "flight", "/nonexistent/x"))
  end

  # It begins and ends without Ruby, which takes that in later.
  def test_a_loop_that_stands_still
    pid = program(<<~RUBY).pid
      require #{File.expand_path("../offload/select_scheduler", __dir__).dump}
      class Worker
        def crunch = (till = now + 0.1; nil while now < till)
        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
      SelectScheduler.run { ready; loop { sleep(0.01) && Worker.new.crunch } }
    RUBY
    assert_quiet_success record(pid, "start", file)
    await("stalls") { trace(file)[:marks].size >= 3 }
    assert_quiet_success record(pid, "stop")
    assert_match(/\Aloop stall of \d+ ms: .*[#`](crunch|now)'/, trace(file)[:marks].map { |mark| mark[:name] }.join("\n"))
    assert_quiet_success record(pid, "start", other)
    await("stalls of another recording") { trace(other)[:marks].size >= 3 }
  end

  def test_a_flight_recording
    pid = program("Thread.new { sleep 0.001 while true }.name = 'napper'; ready; sleep").pid
    await("its name") { stats(@programs.last.socket)[:threads].any? { |thread| thread[:name] == "napper" } }
    assert_quiet_success record(pid, "start", "--mode", "flight", "--events", "1000", "--seconds=5", file)
    assert_match(/\Amode     flight\n/, cli("ctl", pid, "get", "recorder").out)
    assert_quiet_success cli("ctl", pid, "dump", other)
    assert_includes trace(other)[:threads].map { |thread| thread[:name] }, "napper"
    refute_path_exists file
    assert_quiet_success record(pid, "stop")
    assert_nil trace(file)[:processes].first[:damage]
    assert_quiet_success record(pid, "start")
    assert_match(/mode     flight\nfile     none\n/, record(pid, "stop").out)
  end

  # Who asks for a dump does so when the stall is over: then nobody runs who could tell Ruby's names.
  def test_a_dump_of_a_process_that_sleeps_names_the_code_that_held_others_up
    pid = program(<<~RUBY).pid
      Headway::Recorder.start(mode: :flight)
      io = Thread.new { 20.times { sleep 0.005 } }
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      def held_it(till) = (Integer.sqrt(2) until now > till)
      held_it(now + 0.5)
      io.join
      ready
      sleep
    RUBY
    await("sleep") { stats(@programs.last.socket)[:threads].none? { |thread| %w[running ready].include?(thread[:state]) } }
    assert_quiet_success cli("ctl", pid, "dump", other)

    assert_includes trace(other)[:blame][:frames].map { |frame| frame[:method] }, "Object#held_it"
  end

  def test_what_cannot_be_dumped_at_a_stop_is_kept_until_the_next
    pid = program("ready; sleep").pid
    Dir.mkdir(gone = File.join(@directory, "gone"))
    2.times do
      assert_quiet_success record(pid, "start", "--mode", "flight", File.join(gone, "out.headway"))
      FileUtils.rm_r(gone)
      assert_bad_usage(%r{no dump to .*/gone/out.headway: No such .*: the recording goes on: dump it to another file; the next stop ends it}, record(pid, "stop"))
      assert_quiet_success cli("ctl", pid, "dump", other)
      assert_nil trace(other)[:processes].first[:damage]
      assert_bad_usage(%r{\Aheadway: no dump to .*/gone/out.headway: No such file or directory\n\z}, record(pid, "stop"))
      assert_bad_usage(/nothing is recorded/, record(pid, "stop"))
      Dir.mkdir(gone)
    end
  end

  def test_a_file_of_any_name
    pid = program("ready; sleep").pid
    named = File.join(@directory, "caf\u00e9.headway")
    locale = { "HEADWAY_CONTROL_DIR" => @sockets, "LC_ALL" => "C" }
    assert_quiet_success headway("ctl", pid.to_s, "record", "start", named, env: locale)
    assert_quiet_success headway("ctl", pid.to_s, "record", "stop", env: locale)
    assert_nil trace(named)[:processes].first[:damage]
    assert_quiet_success headway("ctl", pid.to_s, "record", "start", File.join(@directory, "a\e[2Jb"), env: locale)
    assert_match(%r{^file     .*/a\?\[2Jb$}, headway("ctl", pid.to_s, "record", "stop", env: locale).out)
    odd = File.join(@directory, "\xff".b)
    assert_bad_usage(/can't be told .*: give a name in UTF-8/, headway("ctl", pid.to_s, "record", "start", odd, env: locale))
  end

  def test_the_recording_goes_on_to_the_end_of_the_process
    program = program("Thread.new { sleep 0.001 while true }.name = 'napper'; ready; gets; Process.wait(fork { Thread.new { }.join })",
                      input: true)
    assert_quiet_success record(program.pid, "start", file)
    program.input.puts
    assert ended(program).success?
    assert_nil trace(file)[:processes].first[:damage]
    children = Dir[File.join(@directory, "out.*.headway")]
    assert_equal 1, children.size
    assert_nil trace(children.first)[:processes].first[:damage]
  end

  def test_what_ruby_started_and_what_a_client_started
    program = program(<<~RUBY, input: true)
      Headway::Recorder.start(file: #{file.inspect})
      Headway.mark("one") { ready; gets }
      puts Headway::Recorder.recording?
      puts Headway::Recorder.stop
      ready
      gets
      p Headway::Recorder.stats.values_at(:mode, :file)
      Headway.mark("two")
      puts Headway::Recorder.stop
      gets
    RUBY
    assert_quiet_success record(program.pid, "stop")
    assert_equal ["one"], trace(file)[:marks].map { |mark| mark[:name] }
    program.input.puts
    assert_equal %w[false false ready], Array.new(3) { line_of(program) }
    assert_quiet_success record(program.pid, "start", other)
    program.input.puts
    assert_equal ["[:stream, #{other.inspect}]", "true"], Array.new(2) { line_of(program) }
    assert_equal ["two"], trace(other)[:marks].map { |mark| mark[:name] }
  end

  # Nobody but a native thread can tell of a wait behind a thread that keeps the GVL.
  def test_a_wait_that_lasts_is_dumped_while_it_lasts
    program = program(<<~RUBY)
      require "harness/vm_fixture"
      Thread.new { sleep }.name = "sleeper"
      ready
      sleep 0.05 until File.exist?(#{File.join(@directory, "go").inspect})
      Thread.new { sleep 0.05 }.name = "stuck"
      VMFixture.sleep_holding_gvl(20)
    RUBY
    assert_quiet_success record(program.pid, "start", "--mode", "flight", "--wait-threshold", "0.2", file)
    sleep 0.3
    assert_empty Dir[File.join(@directory, "*.headway")], "nobody has waited"
    File.write(File.join(@directory, "go"), "")
    wait = File.join(@directory, "out.wait-1.headway")
    await("a dump") { whole?(wait) }
    stuck = trace(wait)[:threads].max_by { |thread| thread[:ready_s] }
    assert_operator stuck[:ready_s], :>=, 0.2
    assert_operator trace(wait)[:processes].first[:end_s], :<, 15
    assert program.pid && Process.kill(0, program.pid)
  end

  def test_bad_words
    pid = sleeper.pid
    assert_bad_usage(/record what: give start or stop/, record(pid))
    assert_bad_usage(/"frob" is nothing that record does: give start or stop/, record(pid, "frob"))
    assert_bad_usage(/"b" is not expected here: record start takes one FILE/, record(pid, "start", "a", "b"))
    utf8 = { "HEADWAY_CONTROL_DIR" => @sockets, "LC_ALL" => "C.UTF-8" }
    { %W[\xff] => /give a name in UTF-8/, %W[--events \xff] => /--events is "\ufffd": give a number/ }.each do |words, why|
      assert_bad_usage(why, headway("ctl", pid.to_s, "record", "start", *words, env: utf8))
    end
    assert_bad_usage(/"a" is not expected here: record stop takes nothing more/, record(pid, "stop", "a"))
    assert_bad_usage(/unknown option --frob/, record(pid, "start", "--frob", "1"))
    assert_bad_usage(/--mode needs a value/, record(pid, "start", "--mode"))
    assert_bad_usage(/--events is "x": give a number/, record(pid, "start", "--events", "x"))
    assert_bad_usage(/events is 0: give 1 to 100000000/, record(pid, "start", "--events", "0"))
    assert_bad_usage(/mode is "both": give stream or flight/, record(pid, "start", "--mode", "both", file))
    assert_bad_usage(/mode is stream: give a file, too/, record(pid, "start", "--mode", "stream"))
    assert_bad_usage(/seconds and wait_threshold are for mode flight/, record(pid, "start", "--seconds", "1", file))
    assert_bad_usage(%r{no recording to /no/such/x: No such file or directory}, record(pid, "start", "/no/such/x"))
    assert_bad_usage(/nothing is recorded in this process/, record(pid, "stop"))
  end

  # Marks, collections, threads, forks and Ruby's own recordings while clients start and stop others.
  def test_everything_at_once
    program = program(<<~RUBY, input: true)
      GC.disable
      stop = false
      threads = 2.times.map { Thread.new { Headway.mark("x") { Thread.pass } until stop } }
      threads << Thread.new { Thread.new { sleep 0.0005 }.join until stop }
      threads << Thread.new { (GC.start(full_mark: false); sleep 0.001) until stop }
      threads << Thread.new do
        until stop
          Headway::Recorder.start(mode: :flight, events: 2000)
          sleep 0.003
          Headway::Recorder.stop # a client's, too: few of theirs come to their end where this comes often
          sleep rand * 0.05
        end
      end
      threads << Thread.new { (Process.wait(fork { Thread.new { Headway.mark("child") }.join }); sleep 0.02) until stop }
      ready
      gets
      stop = true
      threads.each(&:join)
    RUBY
    files = Array.new(2) do |client|
      Thread.new do
        (0..500).lazy.filter_map { |round| recorded_by_client(program, file("#{client}-#{round}.headway")) }.first(4)
      end
    end.flat_map(&:value)
    refute_empty files
    files.each { |path| assert_nil trace(path)[:processes].first[:damage] }
    program.input.puts
    assert ended(program).success?, File.read(program.err)
  end

  private

  # @return [String, nil] the path, if it was this client that stopped it
  def recorded_by_client(program, path)
    return sleep(0.002) && nil unless ask(program.socket, record: { file: path, events: 100_000 }).key?(:recorder)

    sleep 0.005
    path if ask(program.socket, record: false).dig(:recorder, :file) == path
  end

  def record(pid, *words) = cli("ctl", pid, "record", *words)

  def file(name = "out.headway") = File.join(@directory, name)

  def other = file("other.headway")

  # A file may still be empty.
  def whole?(path)
    File.exist?(path) && trace(path)[:processes].first[:damage].nil?
  rescue Headway::Trace::Error
    false
  end

  def trace(path) = Headway::Trace.open(path).to_h
end
