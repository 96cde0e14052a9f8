# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "json"
require "rbconfig"
require "socket"
require "tmpdir"
require "cli/command_line"
require "harness/timing"

# A Ruby program with a control socket, in a directory of its own, and the means to talk to it byte by byte.
module ControlledProcesses
  include CommandLine
  include Harness::Timing

  ROOT = CommandLine::ROOT
  CLEAN = CommandLine::CLEAN
  # Sent when the program is where its test wants it.
  READY = "ready"

  # One program. It is killed when its test ends.
  Program = Struct.new(:pid, :out, :err, :directory, :input) do
    def socket(of = pid) = File.join(directory, "#{of}.sock")
  end

  def setup
    super
    skip Headway::Platform.unsupported_reason unless Headway::Platform.reason.nil?
    @programs = []
    @directory = File.realpath(Dir.mktmpdir("hw"))
    @sockets = File.join(@directory, "sockets")
  end

  def teardown
    @programs&.each { |program| finish(program) }
    FileUtils.rm_rf(@directory) if @directory
    super
  end

  # @param code [String] run after Headway.start; `ready` in it says that the test may go on
  # @param input [Boolean] whether it gets an input of its own
  def program(code, env: {}, start: "Headway.start", sockets: @sockets, wait: true, input: false)
    out, child_out = IO.pipe
    child_in, input = IO.pipe if input
    err = File.join(@directory, "err#{@programs.size}")
    text = "$stdout.sync = true\ndef ready = puts(#{READY.inspect})\nrequire 'headway'\n#{start}\n#{code}"
    pid = Process.spawn(CLEAN.merge("HEADWAY_CONTROL_DIR" => sockets, **env), RbConfig.ruby, "-I#{File.join(ROOT, "lib")}",
                        "-I#{File.join(ROOT, "test")}", "-e", text, in: child_in || :in, out: child_out, err: err)
    [child_in, child_out].compact.each(&:close)
    @programs << (program = Program.new(pid, out, err, sockets, input || nil))
    await_ready(program) if wait
    program
  end

  class << self
    attr_accessor :sleeper
  end

  # A program that does nothing, the same one for all tests that only talk to it.
  def sleeper
    ControlledProcesses.sleeper ||= start_sleeper
    @sockets = ControlledProcesses.sleeper.directory
    ControlledProcesses.sleeper
  end

  def start_sleeper
    directory = File.realpath(Dir.mktmpdir("hw"))
    sleeper = program("Thread.new { sleep }.name = 'worker'; ready; sleep", sockets: File.join(directory, "sockets"))
    @programs.delete(sleeper)
    Minitest.after_run do
      Process.kill(:KILL, sleeper.pid)
      Process.wait(sleeper.pid)
      FileUtils.rm_rf(directory)
    end
    sleeper
  end

  def await_ready(program)
    line = line_of(program)
    flunk "the program said #{line.inspect} instead of being ready: #{File.read(program.err)}" unless line == READY
  end

  def line_of(program, limit = 30)
    return "(nothing)" unless program.out.wait_readable(limit * Harness::TimeLimit.seconds_scale)

    program.out.gets&.chomp
  end

  # @return [Process::Status]
  def finish(program, signal = :KILL)
    return unless program.pid

    Process.kill(signal, program.pid)
    ended(program)
  rescue Errno::ESRCH
    nil
  end

  def ended(program, limit = 20)
    status = nil
    await("the program ends", limit) { status = Process.wait2(program.pid, Process::WNOHANG)&.last }
    program.pid = nil
    [program.out, program.input].compact.each(&:close)
    status
  end

  def await(what, limit = 20, &) = super(what, limit: limit, pause: 0.005, &)

  # -- the command line, in this process, because most of the time a command takes is that of starting a Ruby

  # What a command said, as {CommandLine#headway} gives it.
  Said = Struct.new(:out, :err, :status) do
    def success? = status.success?
  end
  Ended = Struct.new(:exitstatus) do
    def success? = exitstatus.zero?
  end

  def cli(*words)
    require "headway/cli"
    before = ENV.fetch("HEADWAY_CONTROL_DIR", nil)
    ENV["HEADWAY_CONTROL_DIR"] = @sockets
    status = nil
    out, err = capture_io do
      status = Headway::CLI.call(words.map(&:to_s))
    rescue SystemExit => error # --help
      status = error.status
    end
    Said.new(out, err, Ended.new(status))
  ensure
    ENV["HEADWAY_CONTROL_DIR"] = before
  end

  # -- talking to it

  # Ruby takes a connect that a signal interrupted, while the queue was full, for done.
  def connect(path)
    loop do
      socket = UNIXSocket.new(path)
      socket.getpeername
      return socket
    rescue Errno::ENOTCONN
      socket.close
    end
  end

  # @param text [String, Hash] a line without its end, or what it says
  # @return [Hash] the answer
  def ask(path, text)
    socket = connect(path)
    socket.write("#{text.is_a?(String) ? text : JSON.generate(text)}\n")
    answer(socket)
  ensure
    socket&.close
  end

  def answer(socket, limit = 20)
    assert socket.wait_readable(limit * Harness::TimeLimit.seconds_scale), "no answer"
    line = socket.gets
    line && JSON.parse(line, symbolize_names: true)
  end

  def stats(path) = ask(path, { get: "stats" }).fetch(:stats)

  # Whether the server hangs up within the limit.
  def hung_up?(socket, limit)
    socket.wait_readable(limit * Harness::TimeLimit.seconds_scale) && socket.read_nonblock(1, exception: false).nil?
  rescue Errno::ECONNRESET
    true
  end
end
