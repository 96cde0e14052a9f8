# frozen_string_literal: true

require "control/controlled_process"

# The socket's file and its process: from the start to every kind of end.
class ControlLifecycleTest < Minitest::Test
  include ControlledProcesses

  SLEEPING = "ready; sleep"

  def test_only_the_owner_can_enter
    path = program(SLEEPING).socket

    assert_equal 0o700, File.stat(@sockets).mode & 0o7777
    assert_equal 0o600, File.stat(path).mode & 0o7777
    assert File.socket?(path)
    assert_equal [File.basename(path)], Dir.children(@sockets)
  end

  ENDS = {
    "the end of the program" => "", "exit" => "exit 3", "an exception" => "raise 'over'", "abort" => "abort 'over'",
    "SIGTERM" => "Process.kill(:TERM, Process.pid); sleep", "SIGINT" => "Process.kill(:INT, Process.pid); sleep",
    "Headway.stop" => "Headway.stop; exit!(0)", "an exit under load" => "4.times { Thread.new { loop { nil } } }; sleep 0.05; exit"
  }.freeze

  def test_the_file_is_removed_when_the_process_ends
    ENDS.each do |name, code|
      program = program("ready; #{code}", wait: false)
      await_ready(program)
      ended(program)

      assert_empty Dir.children(@sockets), name
    end
  end

  def test_clients_keep_no_process_from_ending
    program = program("Headway::Recorder.start(mode: :flight); #{SLEEPING}")
    clients = ["", "{", "{\"get\":\"stats\"}\n" * 100, "{\"dump\":\"#{@directory}/dump\"}\n" * 100].map do |text|
      connect(program.socket).tap { |socket| socket.write(text) }
    end
    finish(program, :TERM)

    assert_empty Dir.children(@sockets)
  ensure
    clients&.each(&:close)
  end

  def test_a_stop_closes_it_and_a_start_opens_it_again
    program = program("ready; gets; Headway.stop; ready; gets; Headway.start; ready; sleep", input: true)
    before = connect(program.socket)
    program.input.puts
    await_ready(program)
    assert hung_up?(before, 5)
    assert_empty Dir.children(@sockets)
    assert_raises(Errno::ENOENT) { connect(program.socket) }
    program.input.puts
    await_ready(program)

    assert ask(program.socket, { ping: true })[:ping]
    restarted = program("20.times { Headway.stop; Headway.start }; ready; sleep")
    assert ask(restarted.socket, { ping: true })[:ping]
  ensure
    before&.close
  end

  def test_it_can_be_switched_off
    program = program("p Headway::Control.path; #{SLEEPING}", env: { "HEADWAY_CONTROL" => "0" }, wait: false)
    assert_equal "nil", line_of(program)
    refute File.exist?(@sockets)
    program = program("", start: "begin; Headway.start; rescue Headway::SettingError => e; puts e.message; end",
                          env: { "HEADWAY_CONTROL" => "off" }, wait: false)
    assert_equal 'HEADWAY_CONTROL is "off": give 0 or 1', line_of(program)
  end

  def test_headway_run_opens_it
    out, child_out = IO.pipe
    pid = Process.spawn(CLEAN.merge("HEADWAY_CONTROL_DIR" => @sockets), RbConfig.ruby, CommandLine::EXE, "run", RbConfig.ruby, "-e",
                        "$stdout.sync = true; puts :ready; sleep", out: child_out)
    child_out.close
    @programs << (program = ControlledProcesses::Program.new(pid, out, nil, @sockets))

    assert_equal "ready", line_of(program)
    assert ask(program.socket, { ping: true })[:ping]
  end

  def test_what_a_killed_process_leaves_is_cleaned_up_by_the_next
    first = program(SLEEPING)
    path = first.socket
    finish(first, :KILL)
    assert File.socket?(path), "a kill leaves the file"

    second = program(SLEEPING)
    await("the stale file is gone") { Dir.children(@sockets) == [File.basename(second.socket)] }
  end

  def test_no_place_for_it_stops_nobody
    gone = File.join(@directory, "gone")
    Dir.mkdir(gone)
    program = program("puts Headway.started?", start: "Dir.chdir(#{gone.dump}); Dir.rmdir(#{gone.dump}); Headway.start", sockets: "sockets", wait: false)
    assert_equal "true\n", program.out.gets
    ended(program)
    said = "HEADWAY_CONTROL_DIR is \"sockets\": the current directory is gone; give an absolute path"
    assert_equal "headway: no control socket, so headway top cannot see this process: #{said}\n", File.read(program.err)
  end

  def test_a_place_that_begins_with_a_tilde
    program = program("ready; sleep", start: "Dir.chdir(#{@directory.dump}); Headway.start", sockets: "~nobody's")
    assert_equal ["#{program.pid}.sock"], Dir.children(File.join(@directory, "~nobody's"))
  end

  def test_headway_top_cleans_up_too
    stale = program(SLEEPING)
    alive = program(SLEEPING)
    path = stale.socket
    pid = stale.pid
    finish(stale, :KILL)
    File.write(File.join(@sockets, "notes.txt"), "kept")
    result = headway("top", env: { "HEADWAY_CONTROL_DIR" => @sockets })

    assert_quiet_success result
    refute_match(/^ *#{pid} /, result.out)
    assert_match(/^ *#{alive.pid} /, result.out)
    refute File.exist?(path)
    assert_equal ["#{alive.pid}.sock", "notes.txt"], Dir.children(@sockets).sort
  end

  def test_a_file_of_the_same_number_left_by_another_is_replaced
    Dir.mkdir(@sockets, 0o700)
    program = program("", start: <<~RUBY, wait: false)
      require "socket"
      UNIXServer.new(File.join(ENV["HEADWAY_CONTROL_DIR"], "\#{Process.pid}.sock")).close
      Headway.start
      ready
      sleep
    RUBY
    await_ready(program)

    assert ask(program.socket, { ping: true })[:ping]
    assert_equal ["#{program.pid}.sock"], Dir.children(@sockets)
  end

  def test_a_socket_at_which_another_answers_is_left_alone
    Dir.mkdir(@sockets, 0o700)
    program = program("", start: <<~RUBY, wait: false)
      require "socket"
      SERVER = UNIXServer.new(File.join(ENV["HEADWAY_CONTROL_DIR"], "\#{Process.pid}.sock"))
      p Headway.start
      puts Headway.notices
    RUBY

    assert_equal "true", line_of(program)
    assert_match(/no control socket.*: another process answers at .*: do containers share the directory\?/, line_of(program))
  end

  def test_exec_leaves_nothing_that_answers
    program = program("ready; $stdout.flush; exec('sleep', '30')")
    await("exec") { (connect(program.socket).close; false) rescue true }
    result = headway("ctl", program.pid.to_s, "get", env: { "HEADWAY_CONTROL_DIR" => @sockets })

    assert_bad_usage(/process #{program.pid} doesn't run Headway/, result)
    refute File.exist?(program.socket)
  end

  def test_directories_that_must_not_be_trusted
    { "can be entered by others (mode 0755): it takes one of your own" => -> { Dir.mkdir(@sockets, 0o755) && File.chmod(0o755, @sockets) },
      "is no directory" => -> { File.symlink(Dir.mkdir(File.join(@directory, "real"), 0o700) && File.join(@directory, "real"), @sockets) },
      "is no directory " => -> { File.write(@sockets, "") },
      "cannot be made: No such file" => -> { @sockets = File.join(@sockets, "deeper") } }.each do |words, make|
      FileUtils.rm_rf(@sockets)
      make.call
      assert_refused words.strip
      FileUtils.rm_rf(@sockets)
    end
  end

  def test_a_directory_of_another_user
    skip "only root can make one" unless Process.euid.zero?
    Dir.mkdir(@sockets, 0o700)
    File.chown(65_534, 65_534, @sockets)

    assert_refused "belongs to another user (65534)"
    result = headway("top", env: { "HEADWAY_CONTROL_DIR" => @sockets })
    assert_match(/belongs to another user: what is in it is not looked at/, result.err)
  end

  def test_a_directory_whose_name_is_too_long
    @sockets = File.join(@directory, "x" * 100)

    assert_refused "is too long: a socket's path has"
    @sockets = File.join(@directory, "x" * 200, "y" * 255)
    assert_refused "is too long: a socket's path has"
  end

  def test_other_users_are_not_answered
    skip "only root can become another user" unless Process.euid.zero?
    path = program(SLEEPING).socket
    File.chmod(0o711, @directory)
    File.chmod(0o711, @sockets)
    File.chmod(0o666, path)
    pid = fork do
      Process::Sys.setuid(65_534)
      socket = UNIXSocket.new(path)
      socket.write("{\"ping\":true}\n") rescue nil
      exit!((socket.gets rescue nil).nil? ? 0 : 1)
    end
    assert_equal 0, Process.wait2(pid).last.exitstatus
  end

  def test_nothing_is_shown_to_the_program
    program = program(<<~RUBY)
      ready
      puts [Thread.list.size, ThreadGroup::Default.list.size, ObjectSpace.each_object(Thread).count,
            ObjectSpace.each_object(IO).count { |io| !io.closed? && io.fileno >= 100 }].inspect
      sleep
    RUBY

    assert_equal "[1, 1, 1, 0]", line_of(program)
  end

  def test_a_program_that_closes_all_descriptors_lives_on
    program = program(<<~RUBY, wait: false)
      (3..300).each { |fd| IO.for_fd(fd).close rescue nil }
      files = Array.new(150) { File.open(File::NULL, "w") }
      sleep 0.2
      files.each { |file| file.write("x") }
      Headway.stop
      Headway::Native.control_close # nothing is left to close
      abort "open" if Headway::Native.control_path
      p files.none?(&:closed?), Headway.start
    RUBY
    status = ended(program)

    assert_predicate status, :success?, File.read(program.err)
  end

  # The server wakes for its client, whose number is a file's by then.
  def test_a_program_that_closes_a_client_s_descriptor_keeps_the_file_that_comes_after_it
    program = program(<<~RUBY, wait: false)
      require "socket"
      def descriptors = (3..300).select { |fd| IO.for_fd(fd, autoclose: false) rescue nil }
      def ask(client) = (client.puts('{"ping":true}') || client.gets rescue nil)
      before = descriptors
      client = UNIXSocket.new(Headway::Native.control_path)
      abort "no answer" unless ask(client)
      (descriptors - before - [client.fileno]).each { |fd| IO.for_fd(fd).close }
      files = Array.new(150) { File.open(File::NULL, "w") }
      abort "an answer" if ask(client)
      abort "no other answer" unless ask(UNIXSocket.new(Headway::Native.control_path))
      abort "another's" unless files.all? { |file| file.stat.chardev? }
    RUBY
    status = ended(program)

    assert_predicate status, :success?, File.read(program.err)
  end

  private

  def assert_refused(words)
    program = program("puts Headway.started?, Headway.notices", wait: false)

    assert_equal "true", line_of(program)
    notice = line_of(program)
    assert_includes notice, words
    assert_match(/\Ano control socket, so headway top cannot see this process: /, notice)
    assert_predicate ended(program), :success?
    assert_equal 1, File.read(program.err).lines.size
  end
end
