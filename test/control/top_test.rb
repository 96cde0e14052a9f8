# frozen_string_literal: true

require "control/controlled_process"
require "io/console"
require "pty"

# `headway top`: piped, and in a real pseudo-terminal.
class TopTest < Minitest::Test
  include ControlledProcesses

  # But not so busy that other tests wait for it.
  BUSY = <<~RUBY
    2.times { |number| Thread.new { loop { 20_000.times { nil }; sleep 0.01 } }.name = "cpu \#{number}" }
    Thread.new { loop { sleep 0.002 } }.name = "io"
    ready
    sleep
  RUBY

  def test_lists_the_processes
    programs = Array.new(2) { program(BUSY) }
    result = top

    assert_quiet_success result
    assert_match(/\A *PID +FOR +POLICY +QUANTUM +THREADS +WAIT P99 +RUBY +COMMAND$/, result.out)
    programs.each { |program| assert_match(/^ *#{program.pid} .* fair +100 ms +4 .* #{RUBY_VERSION} /, result.out) }
    rows = JSON.parse(top("--json").out)
    assert_equal [1, programs.map(&:pid).sort], [rows["schema"], rows["processes"].map { |row| row["pid"] }]
  end

  def test_lists_a_process_with_a_name_of_any_bytes
    program = program("#{BUSY.lines.take(1).join}$0 = \"caf\u00e9 \\xff\".b; ready; sleep")
    [{ "LC_ALL" => "C" }, {}].each do |locale|
      listed = headway("top", "--json", env: { "HEADWAY_CONTROL_DIR" => @sockets, **locale })
      assert_quiet_success listed
      assert_equal [[program.pid, "café ?"]], JSON.parse(listed.out)["processes"].map { |row| row.values_at("pid", "command") }
    end
  end

  def test_lists_how_long_in_minutes_and_hours
    require "headway/cli"
    require "headway/cli/top"
    require "headway/cli/top/process_list"
    client = Struct.new(:pid, :stats)
    found = { 1 => 99.0, 2 => 276.0, 3 => 612_000.0 }.map do |pid, seconds|
      stats = { wall: seconds, policy: "fair", quantum_ms: 100, ruby: "3.4.11", process: { threads: 2, wait: { p99: 0.001 } } }
      Headway::Control::Processes::Found.new(client.new(pid, stats), {}, "puma")
    end
    lines = Headway::CLI::Top::ProcessList.new(found).lines.drop(1)
    assert_equal ["99.0 s", "5 min", "170 h 0 min"], lines.map { |line| line[/\A *\d (.*?) +fair/, 1].strip }
  end

  def test_lists_nothing
    result = top

    assert_quiet_success result
    assert_match(/\ANo process of yours runs Headway\. Start one with headway run COMMAND/, result.out)
  end

  def test_prints_once_when_piped
    program = program(BUSY)
    await_names(program)
    result = headway("top", program.pid.to_s, env: { "HEADWAY_CONTROL_DIR" => @sockets })

    assert_quiet_success result
    refute_match(/\e/, result.out)
    assert_match(/process #{program.pid}, Ruby #{RUBY_VERSION}/, result.out)
    assert_match(/^policy fair, quantum 100 ms, preempt signal; 4 threads$/, result.out)
    rows = result.out[/^THREAD.*/m].lines.drop(1)
    waits = rows.map { |row| row[/\A.+?(?:running|ready|suspended) +[\d.]+ +([\d.]+)/, 1].to_f }
    assert_equal ["cpu 0", "cpu 1", "io", "main"], rows.map { |row| row[/\A(cpu \d|io|main)/] }.sort
    assert_equal waits.sort.reverse, waits, "who waits most comes first"
    assert_equal program.pid, JSON.parse(top("--json", program.pid.to_s).out)["pid"]
  end

  def test_threads_of_one_name_are_told_apart
    program = program("2.times { Thread.new { Thread.current.name = 'pool'; ready; sleep } }; sleep")
    await("both") { stats(program.socket)[:threads].map { |row| row[:name] }.sort == %w[main pool pool] }

    assert_match(/^main .*\npool \(thread \d+\) .*\npool \(thread \d+\) /, top(program.pid.to_s, "--sort", "name").out)
  end

  def test_one_thread
    assert_match(/; 1 thread$/, top(program("ready; sleep").pid.to_s).out)
  end

  def test_sorts
    program = program(BUSY)
    await_names(program)
    assert_match(/^THREAD.*\ncpu 0.*\ncpu 1.*\nio.*\nmain/, top(program.pid.to_s, "--sort", "name").out)
    %w[run wait_p50 wait_p99 hold_p50 hold_p99 preempted state].each { |key| assert_quiet_success top("--sort", key, program.pid.to_s) }
  end

  def test_how_many_columns_characters_take
    require "headway/text_width"
    width = Headway::TextWidth
    { "caf\u00e9" => 4, "e\u0301" => 1, "\u65e5\u672c" => 4, "\u231a" => 2, "\u{1f95d}" => 2, "\u{1fae0}" => 2, "\u{1f1e9}\u{1f1ea}" => 2, "\u2600" => 1 }
      .each { |text, columns| assert_equal columns, width.of(text), text }
  end

  def test_names_cannot_steer_the_terminal
    program = program("Thread.new { loop { sleep 0.01 } }.name = \"\\e[2Jevil\\r\\n\\u4e2d\"; ready; loop { sleep 0.01 }")
    out = await("the name") { top(program.pid.to_s).out.then { |text| text if text.include?("evil??") } }

    refute_match(/\e|\r/, out)
  end

  def test_bad_usage
    assert_bad_usage(/"x" is no PID/, top("x"))
    assert_bad_usage(/"2" is not expected here/, top("1", "2"))
    assert_bad_usage(/there is no process 2147483647/, top("2147483647"))
    assert_bad_usage(/process #{Process.pid} doesn't run Headway/, top(Process.pid.to_s))
    assert_bad_usage(/--interval is "0": give seconds from 0.1 to 3600/, top("--interval", "0", "1"))
    assert_bad_usage(/--sort is "size": give wait, run, /, top("--sort", "size", "1"))
    assert_bad_usage(/unknown option --frob/, top("--frob"))
    assert_match(/Without a PID: the processes of yours/, cli("top", "--help").out)
  end

  # What a setting that was just changed has brought isn't to be looked for in what was before.
  def test_waits_of_an_interval_are_those_since_the_answer_before
    require "headway/cli"
    require "headway/cli/top"
    require "headway/cli/top/sample"
    before, now = [{ 0.03 => 100 }, { 0.00001 => 98, 0.001 => 2, 0.03 => 100 }].map.with_index do |counts, wall|
      buckets = counts.map { |from, count| { from_s: from, to_s: from * 2, count: count } }
      { pid: 1, wall: wall, process: { wait_histogram: buckets } }
    end
    first = Headway::CLI::Top::Sample.new(before)
    assert_equal({ count: 100, p50: 0.045, p99: 0.0597, max: 0.06 }, first.waits.transform_values { |value| value.round(6) })
    waits = Headway::CLI::Top::Sample.new(now, first).waits
    assert_equal [100, 0.002], waits.values_at(:count, :max)
    assert_includes 0.00001..0.00002, waits[:p50]
    assert_in_delta 0.0015, waits[:p99]
    assert_equal({ count: 0, p50: nil, p99: nil, max: nil }, Headway::CLI::Top::Sample.new({ **now, wall: 2 }, Headway::CLI::Top::Sample.new(now)).waits)
  end

  def test_requests_and_jobs_of_an_interval
    program = program(<<~RUBY)
      require "headway"
      Thread.new { loop { Headway::Work.start(:request).tap { sleep 0.005 }.finish } }
      Headway::Work.start(:job).finish
      sleep 0.01 until Headway.stats[:work].size == 2
      ready
      sleep
    RUBY
    assert_match(/^since Headway started: [\d.]+ requests\/s, which waited for the GVL for \d+ % of their time; [\d.]+ jobs\/s, which /, top(program.pid.to_s).out)
    stats = JSON.parse(top("--json", program.pid.to_s).out)
    assert_equal 1, stats["work"]["job"]["wait"]["count"]
    assert_operator stats["work"]["request"]["suspended"], :>, 0
  end

  def test_works_of_an_interval_are_those_that_ended_since_the_answer_before
    require "headway/cli"
    require "headway/cli/top"
    require "headway/cli/top/sample"
    works = ->(count, ready) { { running: count * 0.1, ready: ready, suspended: count * 0.1, wait: { count: count } } }
    first = Headway::CLI::Top::Sample.new({ pid: 1, wall: 10.0, work: { request: works[100, 30.0] } })
    now = Headway::CLI::Top::Sample.new({ pid: 1, wall: 12.0, work: { request: works[105, 31.0], job: works[2, 0.0] } }, first)

    assert_equal({ request: { per_s: 10.0, waited: 0.6 } }, first.works)
    assert_equal({ request: { per_s: 2.5, waited: 0.5 }, job: { per_s: 1.0, waited: 0.0 } }, now.works.transform_values { |one| one.transform_values { |value| value.round(9) } })
    assert_empty Headway::CLI::Top::Sample.new({ pid: 1, wall: 13, work: now.stats[:work] }, now).works
    assert_empty Headway::CLI::Top::Sample.new({ pid: 1, wall: 13 }).works, "of an earlier version"
  end

  def test_how_many_works_a_second_has_no_exponent
    said = { 1234.0 => "1234", 123.4 => "123", 12.34 => "12.3", 0.0123 => "0.0123", 0.00002 => "<0.001" }
    said.each do |rate, text|
      works = { job: { running: 1.0, ready: 0.0, suspended: 1.0, wait: { count: rate * 100_000 } } }
      assert_includes picture(wall: 100_000.0, work: works), "since Headway started: #{text} jobs/s, which "
    end
  end

  # What was behind brief holds, or with the GVL free, is behind no line of code.
  def test_how_much_of_the_waiting_was_seen_where_it_was_little
    line = { method: "Object#crunch", file: "app.rb", line: 7 }
    said = ->(weight) { picture(blame: { weight: weight, lines: [{ **line, weight: weight * 0.75 }] })[/.*crunch.*/] }

    assert_equal "since Headway started: 75 % of the waiting behind Object#crunch at app.rb:7, as far as it was seen: 200 ms of 1.00 s", said[0.2]
    assert_equal "since Headway started: 75 % of the waiting behind Object#crunch at app.rb:7", said[0.95]
  end

  # @return [String] what is shown of a process with these statistics
  def picture(**stats)
    require "headway/cli"
    require "headway/cli/top"
    require "headway/cli/top/frame"
    require "headway/cli/top/sample"
    none = { count: 0, p50: 0.0, p99: 0.0, max: 0.0 }
    process = { running: 1.0, ready: 1.0, suspended: 9.0, wait: none, hold: none, switches: { voluntary: 1, preempted: 0 }, threads: 0, wait_histogram: [] }
    sample = Headway::CLI::Top::Sample.new({ pid: 1, wall: 10.0, policy: "fair", quantum_ms: 100, preempt: "signal", process: process, threads: [],
                                             blame: { weight: 0.0, lines: [] }, **stats })
    Headway::CLI::Top::Frame.new(sample, sort: :wait).lines.join("\n")
  end

  # -- in a terminal

  def test_refreshes_and_quits
    program = program(BUSY)
    in_terminal(program.pid.to_s, "--interval", "0.2") do |terminal|
      terminal.await(/process #{program.pid}/)
      terminal.await(/in [\d.]+ m?s: GVL held/)
      terminal.await(/in [\d.]+ m?s: [1-9]\d* waits?, p50 [\d.]+ .s p99 [\d.]+ .s max [^\n]*\r\nsince Headway started, as in the table: waits p50 /)
      terminal.type("q")
    end
  end

  def test_keys
    program = program(BUSY)
    in_terminal(program.pid.to_s) do |terminal|
      terminal.await(/sorted by wait /)
      terminal.type("r")
      terminal.await(/sorted by run /)
      terminal.type("n")
      terminal.await(/sorted by name /)
      terminal.type("x")
      terminal.type("+")
      terminal.await(/every 2 s/)
      terminal.type("---")
      terminal.await(/every 0\.2 s/)
      terminal.type("\e[B")
      terminal.await(/THREAD[^\n]*\r\n[^\n]*cpu 1/)
      terminal.type("\e[A")
      terminal.await(/THREAD[^\n]*\r\n[^\n]*cpu 0/)
      terminal.type("\e")
    end
  end

  def test_adapts_to_the_width_and_to_a_resize
    program = program(BUSY)
    in_terminal(program.pid.to_s, "--interval", "0.2", size: [12, 100]) do |terminal|
      terminal.await(/HOLD P99/)
      terminal.resize(10, 40)
      terminal.await(/WAIT %/) { |frame| !frame.include?("HOLD P99") && widths(frame).max <= 40 }
      [[5, 20], [2, 3], [1, 1], [3, 200], [60, 8], [24, 80]].each do |height, width|
        terminal.resize(height, width)
        terminal.await(/./) { |frame| widths(frame).max <= width && frame.lines.size <= height }
      end
      terminal.type("q")
    end
  end

  def test_many_threads_in_a_low_terminal
    program = program("60.times { |number| Thread.new { sleep }.name = format('sleeper %02d', number) }; ready; loop { sleep 0.01 }")
    in_terminal(program.pid.to_s, size: [14, 80]) do |terminal|
      terminal.await(/\(\d+ more\)/) { |frame| frame.lines.size <= 14 }
      terminal.type("n")
      terminal.await(/sleeper 00/)
      terminal.type("\e[6~" * 3)
      terminal.await(/sleeper 2/) { |frame| !frame.include?("sleeper 00") }
      terminal.type("q")
    end
  end

  def test_threads_that_an_answer_has_no_room_for
    program = program("1_010.times { Thread.new { sleep } }; ready; sleep")
    # Its main thread says that it is ready, then waits for its turn to sleep behind all that are new.
    await("all sleep") { stats(program.socket)[:threads].all? { |row| row[:state] == "suspended" } }
    result = top(program.pid.to_s)
    assert_match(/; 1011 threads, of which the youngest 11 are not shown$/, result.out)
    assert_equal 1000, result.out.lines.grep(/ suspended /).size
  end

  %w[INT TERM HUP].each do |signal|
    define_method("test_puts_the_terminal_back_after_SIG#{signal}") do
      program = program(BUSY)
      in_terminal(program.pid.to_s, status: :any) do |terminal|
        terminal.await(/GVL held/)
        signal == "INT" ? terminal.type("\x03") : terminal.kill(signal)
      end
    end
  end

  def test_puts_the_terminal_back_after_an_error
    program = program(BUSY)
    patch = File.join(@directory, "patch.rb")
    File.write(patch, <<~RUBY)
      %w[cli summary cli/top cli/top/watch].each { |name| require File.join(#{File.join(ROOT, "lib/headway").inspect}, name) }
      Headway::CLI::Top::Watch.prepend(Module.new { def obey(*) = raise("broken") })
    RUBY
    in_terminal(program.pid.to_s, status: :any, ruby: ["-r#{patch}"]) do |terminal|
      terminal.await(/GVL held/)
      terminal.type("w")
    end
  end

  def test_stops_and_goes_on
    program = program(BUSY)
    in_terminal(program.pid.to_s, "--interval", "0.2") do |terminal|
      terminal.await(/GVL held/)
      terminal.kill("TSTP")
      terminal.await_raw(/\e\[\?1049l/)
      await("it stops") { File.read("/proc/#{terminal.pid}/stat")[/\) (.)/, 1] == "T" } if File.exist?("/proc/self/stat")
      terminal.kill("CONT")
      terminal.await_raw(/\e\[\?1049h/)
      terminal.await(/GVL held/)
      terminal.type("q")
    end
  end

  def test_a_dumb_terminal_is_shown_one_picture
    program = program(BUSY)
    in_terminal(program.pid.to_s, env: { "TERM" => "dumb" }) do |terminal|
      terminal.await_raw(/\AHeadway .*GVL held.*THREAD/m)
      refute_includes terminal.all, "\e"
    end
  end

  def test_the_process_ends_meanwhile
    program = program(BUSY)
    pid = program.pid
    in_terminal(pid.to_s, "--interval", "0.2") do |terminal|
      terminal.await(/GVL held/)
      finish(program)
      terminal.await_raw(/process #{pid} has ended/)
    end
  end

  def test_the_process_is_stopped_meanwhile
    program = program(BUSY)
    in_terminal(program.pid.to_s, "--interval", "0.2") do |terminal|
      terminal.await(/GVL held/)
      stop_process(program.pid)
      list = Thread.new { headway("top", env: { "HEADWAY_CONTROL_DIR" => @sockets }).out }
      terminal.await(/doesn't answer: is it stopped\?/)
      assert_match(/^ *#{program.pid} .*doesn't answer: is it stopped\?/, list.value)
      Process.kill(:CONT, program.pid)
      terminal.await(/every 0\.2 s/)
      terminal.type("q")
    end
  end

  # A pseudo-terminal, and what was drawn in it.
  class Terminal
    def initialize(test, master, slave, pid)
      @test = test
      @master = master
      @slave = slave
      @pid = pid
      @text = +""
      @all = +""
      @seen = 0 # of it
    end

    attr_reader :pid, :all

    def type(keys) = @master.write(keys)
    def kill(signal) = Process.kill(signal, @pid)

    def resize(height, width)
      @slave.winsize = [height, width]
      Process.kill(:WINCH, @pid) # which the kernel sends to the session that has the terminal
    end

    # Until a whole frame that was drawn after this was called matches.
    def await(pattern, &condition)
      read
      @text.clear
      await_raw(nil) do
        frames = @text.scrub.split("\e[H", -1).drop(1).select { |frame| frame.include?("\e[?2026l") }
        frames.any? { |frame| plain(frame).then { |text| text.match?(pattern) && (condition.nil? || condition[text]) } }
      end
    rescue Minitest::Assertion => error
      raise error.class, "#{error.message}: #{pattern.inspect} in #{@all[-3000..] || @all}"
    end

    def await_raw(pattern)
      @test.await("the terminal shows #{pattern.inspect}") do
        read
        pattern ? @all[@seen..].match?(pattern) : yield
      end
      @seen = @all.size if pattern
    end

    def read
      while (part = @master.read_nonblock(65_536, exception: false)).is_a?(String)
        part = part.force_encoding(Encoding::UTF_8)
        @text << part
        @all << part
      end
    rescue Errno::EIO
      nil
    end

    private

    # The terminal's driver may have added carriage returns of its own.
    def plain(frame) = frame.split("\e[?2026l").first.to_s.gsub(/\e\[[\d;?]*[A-Za-z]/, "").gsub(/\r+\n/, "\r\n")
  end

  # Makes the terminal that of a session of its own, so that its keys send signals.
  OWN_TERMINAL = "trap('HUP', 'DEFAULT'); Process.setsid; File.open(ARGV.shift, File::RDWR); exec(*ARGV)"

  private

  def top(*words) = cli("top", *words)

  # A thread has its name when it has begun.
  def await_names(program)
    await("all names") { stats(program.socket)[:threads].map { |row| row[:name] }.sort == ["cpu 0", "cpu 1", "io", "main"] }
  end

  def widths(frame) = frame.split("\r\n").map(&:length)

  # Runs headway top in a terminal; after the block it must end, and leave the terminal as it was.
  def in_terminal(*words, size: [30, 120], status: 0, ruby: [], env: {})
    PTY.open do |master, slave|
      slave.winsize = size
      settings = stty(slave)
      pid = Process.spawn(CLEAN.merge("HEADWAY_CONTROL_DIR" => @sockets, "TERM" => "xterm").merge(env), RbConfig.ruby, "--disable=gems", "-e", OWN_TERMINAL,
                          slave.path, RbConfig.ruby, *ruby, CommandLine::EXE, "top", *words, in: slave, out: slave, err: slave)
      terminal = Terminal.new(self, master, slave, pid)
      yield terminal
      Process.kill(:INT, pid) if words.empty?
      ended = nil
      await("headway top ends: #{terminal.all[/.{,2000}\z/m]}") { terminal.read; ended = Process.wait2(pid, Process::WNOHANG)&.last }
      pid = nil
      terminal.read
      assert_equal status, ended.exitstatus, terminal.all unless status == :any
      assert_equal settings, stty(slave)
      last = terminal.all
      assert_operator last.rindex("\e[?1049l") || -1, :>=, last.rindex("\e[?1049h") || -1, "the screen is given back"
      assert_operator last.rindex("\e[?25h") || 0, :>=, last.rindex("\e[?25l") || 0, "the cursor is back"
    ensure
      Process.kill(:KILL, pid) && Process.wait(pid) if pid
    end
  end

  def stty(slave) = IO.popen(["stty", "-g"], in: slave, &:read)
end
