# frozen_string_literal: true

require "control/controlled_process"
require "headway/control/client"

# `headway ctl`, as it is typed.
class CtlTest < Minitest::Test
  include ControlledProcesses

  SLEEPING = "Thread.new { sleep }.name = 'worker'; ready; sleep"

  def test_as_a_command
    result = headway("ctl", program(SLEEPING).pid.to_s, "set", "quantum", "10", env: { "HEADWAY_CONTROL_DIR" => @sockets })

    assert_said "policy   fair\nquantum  10 ms\npreempt  signal\n", result
    assert_bad_usage(/no process: give a PID/, headway("ctl"))
  end

  def test_get
    pid = sleeper.pid

    assert_said "policy   fair\nquantum  100 ms\npreempt  signal\n", ctl(pid, "get")
    assert_said "fair\n", ctl(pid, "get", "policy")
    assert_said "100\n", ctl(pid, "get", "quantum")
    assert_said "100\n", ctl(pid, "get", "quantum_ms")
    assert_said "signal\n", ctl(pid, "get", "preempt")
    assert_equal({ "policy" => "fair", "preempt" => "signal", "quantum_ms" => 100 },
                 JSON.parse(ctl(pid, "get", "--json").out)["settings"])
    assert_equal({ "policy" => "fair" }, JSON.parse(ctl(pid, "--json", "get", "policy").out)["settings"])
    assert_equal pid, JSON.parse(ctl(pid, "get", "stats").out)["pid"]
  end

  # They have neither a number nor a state.
  def test_get_of_a_process_whose_threads_have_ended
    pid = program("3.times.map { Thread.new { sleep 0.001 } }.each(&:join); ready; sleep").pid
    result = ctl(pid, "get", "stats")

    assert_quiet_success result
    assert_equal [false], JSON.parse(result.out)["threads"].map { |thread| thread["alive"] }.uniq - [true]
  end

  def test_set
    pid = program(SLEEPING).pid

    assert_said "policy   fair\nquantum  10 ms\npreempt  signal\n", ctl(pid, "set", "quantum", "10")
    assert_said "policy   observe\nquantum  2.5 ms\npreempt  poll\n",
                ctl(pid, "set", "policy", "observe", "preempt", "poll", "quantum", "2.5")
    assert_equal({ "policy" => "quantum", "preempt" => "poll", "quantum_ms" => 2.5 },
                 JSON.parse(ctl("--json", pid, "set", "policy", "quantum").out)["settings"])
    assert_said "2.5\n", ctl(pid, "get", "quantum")
  end

  def test_dump
    pid = program("Headway::Recorder.start(mode: :flight); #{SLEEPING}").pid
    Dir.chdir(@directory) { assert_said "#{File.join(@directory, "x.headway")}\n", ctl(pid, "dump", "x.headway") }
    assert_path_exists File.join(@directory, "x.headway")
    said = ctl("--json", pid, "dump", path = File.join(@directory, "y.headway")).out
    assert_equal({ "headway" => Headway::VERSION, "schema" => 1, "dump" => path }, JSON.parse(said))
    assert_bad_usage(/"y" is not expected here/, ctl(pid, "dump", "x", "y"))
    assert_bad_usage(/no flight recorder runs .*: headway ctl #{sleeper.pid} record start --mode flight begins one/, ctl(sleeper.pid, "dump"))
    stream = program("Headway::Recorder.start(file: #{File.join(@directory, "s.headway").inspect}); #{SLEEPING}").pid
    assert_bad_usage(%r{no flight recorder runs .*: what is recorded is in /.*/s\.headway once headway ctl #{stream} record stop has ended it$}, ctl(stream, "dump"))
  end

  def test_help
    result = cli("ctl", "--help")

    assert_quiet_success result
    assert_match(/\AUsage: headway ctl .*PID get/, result.out)
  end

  def test_bad_values
    pid = sleeper.pid
    %w[0 -1 abc 1e99 4294968 10ms].each do |value|
      assert_bad_usage(/quantum is "#{value}": give milliseconds from 1 to 4294967, such as 10/, ctl(pid, "set", "quantum", value))
    end
    assert_bad_usage(/policy is "nope": give fair, quantum or observe/, ctl(pid, "set", "policy", "nope"))
    assert_bad_usage(/preempt is "": give signal or poll/, ctl(pid, "set", "preempt", ""))
    assert_bad_usage(/no setting is named "frob": give policy, quantum or preempt/, ctl(pid, "set", "frob", "1"))
    assert_bad_usage(/no setting is named "frob": give policy, quantum, preempt, recorder or stats/, ctl(pid, "get", "frob"))
    assert_bad_usage(/policy needs a value \(headway ctl --help says which\)/, ctl(pid, "set", "quantum", "10", "policy"))
    assert_bad_usage(/nothing to set/, ctl(pid, "set"))
    assert_said "100\n", ctl(pid, "get", "quantum")
  end

  def test_bad_usage
    assert_bad_usage(/no process: give a PID/, cli("ctl"))
    assert_bad_usage(/"frob" is no action: give get, set, dump or record/, cli("ctl", "1", "frob"))
    assert_bad_usage(/nothing to do: give get, set, dump or record/, cli("ctl", "1"))
    assert_bad_usage(/unknown option --frob/, cli("ctl", "--frob"))
    assert_bad_usage(/"b" is not expected here/, cli("ctl", "1", "get", "policy", "b"))
    ["x", "", "0", "-", "1.5", "99999999999", "0x10", "1\n", "٣"].each do |pid|
      assert_bad_usage(/is no PID/, cli("ctl", pid, "get"))
    end
  end

  def test_processes_that_cannot_be_asked
    gone = Process.spawn("true")
    Process.wait(gone)
    assert_bad_usage(/there is no process #{gone}/, ctl(gone, "get"))
    assert_bad_usage(/there is no process 2147483647/, ctl(2_147_483_647, "get"))
    assert_bad_usage(/process #{Process.pid} doesn't run Headway/, ctl(Process.pid, "get"))
    silent = program("ready; sleep", env: { "HEADWAY_CONTROL" => "0" })
    assert_bad_usage(/process #{silent.pid} doesn't run Headway .*or runs it with HEADWAY_CONTROL=0/, ctl(silent.pid, "get"))
  end

  # As a wrapper's PID, which is what ps and service managers show: headway run --report has one, too.
  def test_a_process_that_has_those_under_it_which_run_headway
    grandchild = program("pid = fork { Thread.new { sleep }.join }; puts pid; ready; sleep", wait: false)
    child = line_of(grandchild).to_i
    await_ready(grandchild)
    await("the fork's socket") { File.socket?(grandchild.socket(child)) }
    under = [grandchild.pid, child, program(SLEEPING).pid].sort

    assert_bad_usage(/process #{Process.pid} doesn't run Headway, but those under it do: #{under.join(", ")}$/, ctl(Process.pid, "get"))
    assert_bad_usage(/process #{Process.pid} doesn't run Headway, but those under it do: #{under.join(", ")}$/, cli("top", Process.pid))
  ensure
    Process.kill(:KILL, child) if child
  end

  # As a worker of Unicorn: it runs Headway, and has no socket.
  def test_a_forked_process_of_one_thread
    program = program("pid = fork { sleep }; puts pid; ready; sleep", wait: false)
    child = line_of(program).to_i
    await_ready(program)

    assert_bad_usage(/process #{child} has no socket: if it was forked by #{program.pid}, which runs Headway, it gets one with its second thread/, ctl(child, "get"))
  ensure
    Process.kill(:KILL, child) if child
  end

  def test_a_process_of_another_user
    skip "only root can start one" unless Process.euid.zero?
    pid = fork do
      Process::Sys.setuid(65_534)
      exec("sleep", "30")
    end
    await("another user's process") { File.stat("/proc/#{pid}").uid == 65_534 }

    assert_bad_usage(/process #{pid} belongs to another user: ask as that user/, ctl(pid, "get"))
  ensure
    Process.kill(:KILL, pid) && Process.wait(pid) if pid
  end

  def test_a_stopped_process
    program = program(SLEEPING)
    stop_process(program.pid)
    client = Headway::Control::Client.new(program.pid, program.socket, limit: 0.3)
    waiting = Array.new(80) do # more than its queue takes
      socket = Socket.new(:UNIX, :STREAM)
      socket.connect_nonblock(Socket.pack_sockaddr_un(program.socket)) rescue nil
      socket
    end
    assert_match(/doesn't answer: is it stopped\?/, assert_raises(Headway::Control::ClientError) { client.settings }.message)
    Process.kill(:CONT, program.pid)
    assert_said "100\n", ctl(program.pid, "get", "quantum")
  ensure
    waiting&.each(&:close)
  end

  def test_impostors
    Dir.mkdir(@sockets, 0o700)
    pid = Process.spawn("sleep", "30")
    path = File.join(@sockets, "#{pid}.sock")
    File.symlink(program(SLEEPING).socket, path)
    assert_bad_usage(/doesn't run Headway/, ctl(pid, "get"))
    File.unlink(path)
    File.write(path, "no socket")
    assert_bad_usage(/doesn't run Headway/, ctl(pid, "get"))
    assert_equal "no socket", File.read(path), "nothing but sockets is removed"
    File.unlink(path)

    ["nonsense\n", "[]\n", "{}\n", "\n", "", "{\"settings\":", "{\"settings\":5}\n", "{\"settings\":{\"policy\":1}}\n"].each do |answer|
      server = UNIXServer.new(path)
      thread = Thread.new { 2.times { client = server.accept; client.gets && client.write(answer); client.close } rescue nil }
      assert_bad_usage(/process #{pid} (gave an answer that makes no sense|has ended)/, ctl(pid, "get"))
      server.close
      thread.kill.join
      File.unlink(path)
    end
  ensure
    Process.kill(:KILL, pid) && Process.wait(pid) if pid
  end

  def test_a_process_that_ends_as_it_is_asked
    Dir.mkdir(@sockets, 0o700)
    UNIXServer.open(File.join(@sockets, "#{Process.pid}.sock")) do |server|
      thread = Thread.new do
        loop do
          client = server.accept
          client.wait_readable
          client.close # what it was asked lies there unread: a reset
        end
      end
      client = Headway::Control::Client.new(Process.pid, server.path)
      assert_match(/process #{Process.pid} has ended/, assert_raises(Headway::Control::ClientError) { client.settings }.message)
    ensure
      thread&.kill&.join
    end
  end

  def test_a_directory_that_must_not_be_trusted
    pid = program(SLEEPING).pid
    File.chmod(0o755, @sockets)

    assert_bad_usage(/process #{pid} cannot be asked: .* can be entered by others: it takes one of your own/, ctl(pid, "get"))
  end

  # As where nobody asks for the status of what ended: in a container, under a process that isn't made for it.
  def test_a_process_that_has_ended_but_is_still_listed
    listed = File.exist?("/proc/self/stat")
    pid = spawn("exit 0")
    sleep 0.01 until !listed || File.read("/proc/#{pid}/stat").include?(") Z ")
    assert_bad_usage(/process #{pid} #{listed ? "has ended" : "doesn't run Headway"}/, ctl(pid, "get"))
  ensure
    Process.wait(pid)
  end

  private

  def ctl(*words) = cli("ctl", *words)

  def assert_said(text, result)
    assert_quiet_success result
    assert_equal text, result.out
  end
end
