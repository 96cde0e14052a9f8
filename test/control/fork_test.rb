# frozen_string_literal: true

require "control/controlled_process"

# A forked child has a socket of its own from its second thread on; it never answers for its parent, nor touches its parent's file.
class ControlForkTest < Minitest::Test
  include ControlledProcesses

  def test_parent_and_child_answer_for_themselves
    program = program("child = fork { Thread.new { sleep }; sleep }; puts child; ready; sleep", wait: false)
    child = pid_from(program)
    await_ready(program)

    await("the child's socket") { File.socket?(program.socket(child)) }
    assert_equal [program.pid, child], [program.socket, program.socket(child)].map { |path| ask(path, { ping: true })[:ping][:pid] }
    assert_equal 7, ask(program.socket(child), { set: { quantum_ms: 7 } })[:settings][:quantum_ms]
    assert_equal 100, ask(program.socket, { get: "settings" })[:settings][:quantum_ms]
  ensure
    Process.kill(:KILL, child) if child
  end

  def test_a_childs_end_leaves_the_parents_socket
    program = program("3.times { Process.wait(fork { exit }); Process.wait(fork { exit!(0) }); Process.wait(fork { Headway.stop }) }; ready; sleep")

    assert ask(program.socket, { ping: true })[:ping]
  end

  def test_a_parents_end_leaves_the_childs_socket
    program = program("child = fork { Thread.new { sleep }; sleep }; puts child; ready; sleep 0.2", wait: false)
    child = pid_from(program)
    path = program.socket
    await("the child's socket") { File.socket?(program.socket(child)) }
    await_ready(program)
    ended(program)

    assert ask(program.socket(child), { ping: true })[:ping]
    refute File.exist?(path)
  ensure
    Process.kill(:KILL, child) if child
  end

  def test_a_child_keeps_nothing_of_a_killed_parent_alive
    program = program("puts fork { Thread.new { sleep }; sleep }; ready; sleep", wait: false)
    child = pid_from(program)
    path = program.socket
    await_ready(program)
    await("the child's socket") { File.socket?(program.socket(child)) } # it has come out of its fork
    finish(program, :KILL)

    assert_raises(Errno::ECONNREFUSED, Errno::ENOENT) { connect(path) } # the latter: the child has cleaned up
    assert ask(program.socket(child), { ping: true })[:ping]
  ensure
    Process.kill(:KILL, child) if child
  end

  def test_a_storm_of_forks_while_clients_ask
    program = program(<<~RUBY, input: true)
      2.times { Thread.new { loop { nil } } }
      Thread.new { loop { sleep 0.001 } }
      ready
      (0..).each do |number|
        break if number >= 40 && $stdin.wait_readable(0)
        Process.wait(fork { Thread.new { sleep } if number % 3 == 0; number.even? ? exit!(0) : exit(0) })
        exit!(1) unless $?.success?
      end
      ready
      sleep
    RUBY
    storm = Thread.new { line_of(program, 60) }
    answers = 0
    while storm.alive?
      ask(program.socket, { get: "stats" })
      program.input.puts if (answers += 1) == 6
    end

    assert_equal READY, storm.value
    assert_operator answers, :>=, 6
    assert ask(program.socket, { ping: true })[:ping]
  end

  def test_a_child_with_one_thread_has_none_unless_it_starts_headway
    program = program(<<~RUBY, wait: false)
      puts fork { sleep }
      puts fork { Headway.start; sleep }
      sleep
    RUBY
    pids = Array.new(2) { pid_from(program) }
    await("the second child's socket") { File.socket?(program.socket(pids.last)) }

    refute File.exist?(program.socket(pids.first))
  ensure
    pids&.each { |pid| Process.kill(:KILL, pid) }
  end

  def test_connections_are_the_parents_alone
    program = program("ready; gets; child = fork { Thread.new { sleep }; sleep }; puts child; sleep", input: true)
    socket = connect(program.socket)
    socket.write("{\"ping\":true}\n")
    assert_equal program.pid, answer(socket)[:ping][:pid]
    program.input.puts
    child = pid_from(program)
    socket.write("{\"ping\":true}\n")

    assert_equal program.pid, answer(socket)[:ping][:pid]
    finish(program, :KILL)
    assert hung_up?(socket, 5), "the child holds its parent's connection"
  ensure
    socket&.close
    Process.kill(:KILL, child) if child
  end

  def test_a_daemon_has_a_socket
    file = File.join(@directory, "pid")
    program = program("Process.daemon(true, true); Thread.new { sleep }; File.write(#{file.inspect}, Process.pid.to_s); sleep", wait: false)
    status = ended(program)
    assert_predicate status, :success?
    pid = await("the daemon") { File.exist?(file) && File.read(file).to_i.then { |number| number if number.positive? } }
    path = File.join(@sockets, "#{pid}.sock")
    await("its socket") { File.socket?(path) }

    assert_equal pid, ask(path, { ping: true })[:ping][:pid]
  ensure
    Process.kill(:KILL, pid) if pid
  end

  def test_grandchildren_and_children_that_run_programs
    program = program(<<~RUBY, wait: false)
      puts fork { puts fork { Thread.new { sleep }; sleep }; Thread.new { sleep }; sleep }
      system("true") or abort
      `true`
      IO.popen("-") { |io| io ? io.read : print("x") }
      ready
      sleep
    RUBY
    pids = Array.new(3) { line_of(program) }.grep(/\A\d+\z/).map(&:to_i)
    assert_equal 2, pids.size
    pids.each { |pid| await("its socket") { File.socket?(program.socket(pid)) } }

    pids.each { |pid| assert_equal pid, ask(program.socket(pid), { ping: true })[:ping][:pid] }
  ensure
    pids&.each { |pid| Process.kill(:KILL, pid) }
  end

  private

  # Never 0: a kill of that would end the tests, too.
  def pid_from(program) = Integer(line_of(program))
end
