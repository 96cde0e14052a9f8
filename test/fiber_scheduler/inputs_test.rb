# frozen_string_literal: true

require "fiber_scheduler/scheduled"
require "io/nonblock"
require "pty"
require "open3"
require "socket"
require "tempfile"
require "timeout"

# Waits for I/O, processes and addresses.
class FiberSchedulerInputsTest < Minitest::Test
  include Scheduled

  # Selectors refuse to wait for them; io-event's would leave the fiber in its queue.
  def test_what_interrupts_a_wait_for_a_file_or_dev_null_ends_no_later_wait
    slept = []
    looping do
      [__FILE__, File::NULL].each do |path|
        file = File.open(path)
        assert_equal file, scheduled { file.wait_readable }
        fiber = Fiber.schedule do
          file.wait_readable
        rescue IOError
          slept << elapsed { sleep 0.1 }
        end
        Fiber.schedule { sleep 0.02 }
        fiber.raise(IOError)
      end
    end
    assert_operator slept.min, :>=, 0.1
    assert_equal 2, slept.size
  end

  def test_sockets
    answers = []
    looping do
      server = TCPServer.new("127.0.0.1", 0)
      Fiber.schedule do
        20.times { server.accept.then { |peer| Fiber.schedule { peer.write(peer.gets) && peer.close } } }
        server.close
      end
      20.times do |number|
        Fiber.schedule { TCPSocket.open("127.0.0.1", server.addr[1]) { |socket| socket.puts(number) || answers << socket.gets.to_i } }
      end
    end
    assert_equal (0...20).to_a, answers.sort
  end

  def test_a_socket_filled_to_the_brim
    size = 4_000_000
    received = scheduled do
      reader, writer = Socket.pair(:UNIX, :STREAM)
      Fiber.schedule { writer.write("x" * size) && writer.close }
      reader.read.bytesize
    end
    assert_equal size, received
  end

  # As standard input and output may be, if they are pipes.
  def test_descriptors_that_block_hold_nobody_up
    ticks = 0
    read = nil
    looping do
      reader, writer = pipe.each { |io| io.nonblock = false }
      Fiber.schedule { read = reader.read.bytesize }
      Fiber.schedule { ticks += 1 while sleep(0.001) && !read }
      Fiber.schedule do
        sleep 0.001 until ticks > 3
        writer.write("x" * 1_000_000) && writer.close
      end
    end
    assert_equal 1_000_000, read
  end

  # Who comes second finds nothing any more. On a terminal the system knows no read that doesn't block.
  def test_two_who_read_one_descriptor_that_blocks_hold_nobody_up
    terminal = PTY.open.reverse
    %i[gets readpartial sysread readline].product([pipe, terminal]) do |how, (reader, writer)|
      lines = []
      looping do
        reader.nonblock = false
        2.times { Fiber.schedule { lines << reader.public_send(how, 10) } }
        Fiber.schedule do
          writer.write("a\n")
          sleep 0.001 until lines.any?
          5.times { sleep 0.001 }
          writer.write("b\n")
        end
      end
      assert_equal %W[a\n b\n], lines, [how, reader.class]
    end
  ensure
    terminal&.each(&:close)
  end

  # The selector has the descriptor not block meanwhile, for everyone who shares it; and IO#readline is in Ruby.
  def test_who_reads_a_descriptor_that_blocks_does_not_do_it_in_the_selector
    lines = []
    looping do |scheduler|
      scheduler.define_singleton_method(:read_in_selector) { |*| raise "read there" }
      reader, writer = pipe.each { |io| io.nonblock = false }
      Fiber.schedule { %i[gets readline read].each { |how| lines << reader.public_send(how) } }
      Fiber.schedule { 3.times { sleep(0.005) && writer.write("abc\n") } && writer.close }
    end
    assert_equal ["abc\n"] * 3, lines
  end

  def test_both_ends_of_one_socket_are_waited_for_at_once
    events = []
    looping do
      one, other = Socket.pair(:UNIX, :STREAM)
      Fiber.schedule { events << [:read, one.wait_readable(60) == one] }
      Fiber.schedule { events << [:write, one.wait_writable(60) == one] }
      Fiber.schedule { sleep(0.01) && other.write("x") }
    end
    assert_equal [[:read, true], [:write, true]], events.sort
  end

  def test_waits_with_a_time
    reader, _writer = pipe # collected, it would close
    assert_nil scheduled { reader.wait_readable(0.01) }
    assert_nil scheduled { reader.wait(0) }
    reader.timeout = 0.01
    assert_raises(IO::TimeoutError) { scheduled { reader.read(1) } }
  end

  # As without a scheduler: also where nothing has to be waited for, and of an IO's own limit.
  def test_a_wait_refuses_what_is_no_time
    refused = [-1, -Float::INFINITY, "1", false, Float::NAN]
    reader, writer = pipe
    null = File.open(IO::NULL)
    [reader, writer, null].each do |io|
      errors = scheduled { refused.map { |value| assert_raises(ArgumentError, TypeError, RangeError) { io.wait(IO::READABLE | IO::WRITABLE, value) } } }
      assert_equal ["time interval must not be negative"] * 2 + ["can't convert String into time interval",
                                                                 "can't convert FalseClass into time interval", "NaN"], errors.map(&:message)
    end
    reader.timeout = false
    assert_raises(TypeError) { scheduled { reader.read(1) } }
  ensure
    null&.close
  end

  # Both fibers go on in one turn of the loop, in which the second takes longer than the first would wait.
  def test_what_comes_while_a_fiber_keeps_the_loop_from_looking_comes_in_time
    [->(reader) { reader.wait(IO::READABLE, 0.001) && reader.read_nonblock(1) }, ->(reader) { (reader.timeout = 0.001) && reader.read(1) }].each do |wait|
      (first, first_starter), (second, second_starter), (reader, writer) = pipe, pipe, pipe
      got = nil
      looping do
        Fiber.schedule { first.read(1) && got = wait.call(reader) }
        Fiber.schedule { second.read(1) && writer.write("x") && Fiber.blocking { sleep 0.01 } }
        [first_starter, second_starter].each { |starter| starter.write("x") }
      end
      assert_equal "x", got
    end
  end

  def test_who_waits_and_who_does_not
    [-> { IO.pipe }, -> { UNIXSocket.pair }].each do |pair|
      read = scheduled do
        reader, writer = pair.call
        wanted = Thread::Queue.new # else a second line may come before the first one is read
        Fiber.schedule { 4.times { wanted.pop && sleep(0.005) && writer.syswrite("abc\n") } && writer.close }
        line = ->(how, *size) { (wanted << how) && reader.public_send(how, *size) }
        [reader.read_nonblock(9, exception: false), line.(:sysread, 9), line.(:readpartial, 9), line.(:gets), line.(:read), (reader.sysread(1) rescue $!.class)] # rubocop:disable Style/RescueModifier
      end
      assert_equal [:wait_readable, "abc\n", "abc\n", "abc\n", "abc\n", EOFError], read
    end
  end

  # Several strings are one datagram; a trap for SIGPIPE runs.
  def test_what_sockets_write_is_what_ruby_writes
    signals = 0
    before = trap("PIPE") { signals += 1 }
    datagrams = scheduled do
      reader, writer = UNIXSocket.pair(:DGRAM)
      writer.write("a", "b")
      writer.puts("c")
      [reader.recv(9), reader.recv(9)]
    end
    scheduled { UNIXSocket.pair.then { |reader, writer| reader.close || assert_raises(Errno::EPIPE) { writer.write("x") } } }
    assert_equal ["ab", "c\n"], datagrams
    await("the trap") { signals == 1 }
  ensure
    trap("PIPE", before)
  end

  def test_syswrite_waits_for_room_where_descriptors_block
    size = scheduled do
      reader, writer = pipe.each { |io| io.nonblock = false }
      Fiber.schedule { sleep(0.01) && reader.read }
      Array.new(30) { writer.syswrite("x" * 4096) }.sum
    ensure
      writer.close
    end
    assert_equal 30 * 4096, size
  end

  # IO#read_nonblock leaves files so.
  def test_files_that_do_not_block_do_not_keep_the_gvl
    Headway.start(policy: :observe)
    Tempfile.create("headway") do |file|
      releases = scheduled do
        file.nonblock = file.sync = true
        before = switches_of(Thread.current)
        50.times { file.write("x") }
        switches_of(Thread.current) - before
      end
      assert_operator releases, :>=, 50
    end
  ensure
    Headway.stop
  end

  def test_who_waits_for_an_io_that_is_closed_is_told
    messages = []
    looping do
      server = TCPServer.new("127.0.0.1", 0)
      (reader, _writer), (socket, _peer) = pipe, UNIXSocket.pair
      Fiber.schedule { messages << assert_raises(IOError) { socket.write("x" * 10_000_000) }.message }
      Fiber.schedule { messages << assert_raises(IOError) { server.accept }.message }
      Fiber.schedule { messages << assert_raises(IOError) { reader.read }.message }
      Fiber.schedule { sleep(0.01) && server.close }
      Thread.new { sleep(0.02) && [reader, socket].each(&:close) }
    end
    assert_equal ["stream closed in another thread"] * 3, messages
  end

  # All that a full pipe tells who waits to write then is an error.
  def test_who_writes_to_a_pipe_that_nobody_reads_any_more_is_told
    [true, false].each do |nonblock|
      reader, writer = pipe
      writer.nonblock = nonblock
      error = nil
      scheduler = looping do
        Fiber.schedule { error = assert_raises(Errno::EPIPE) { writer.write("x" * 1_000_000) } }
        Fiber.schedule { sleep(0.01) && reader.close }
      end
      assert_kind_of Errno::EPIPE, error
      assert_operator scheduler.stats[:turns], :<, 1000, "nor does the loop spin meanwhile"
    end
  end

  # As a signal's handler that raises: before it is known to whom that began it.
  def test_what_strikes_as_a_thread_of_ours_begins_leaves_none
    struck = Class.new(StandardError)
    child = spawn("sleep 60")
    scheduled do
      point = TracePoint.new(:return) { |at| raise struck if at.method_id == :start && at.path.end_with?("own_thread.rb") }
      assert_raises(struck) { point.enable(target_thread: Thread.current) { Process::Status.wait(child, Process::WUNTRACED) } }
    end
    await("the thread's end") { ours.empty? }
  ensure
    Process.kill(:KILL, child)
    Process.wait(child)
  end

  def test_a_wait_after_a_reopen
    read = scheduled do
      (reader, _writer), (other, writer) = pipe, pipe
      assert_nil reader.wait_readable(0.01)
      reader.reopen(other)
      Fiber.schedule { sleep(0.01) && writer.write("x") }
      Timeout.timeout(patience(10)) { reader.readpartial(10) }
    end
    assert_equal "x", read
  end

  # As a signal's handler does, between any two steps of a wait.
  def test_who_waits_within_a_wait_leaves_the_outer_one_there
    reader, writer = pipe
    other, = pipe
    read = nil
    looping do |scheduler|
      scheduler.define_singleton_method(:look_for_closed) do
        super()
        other.wait_readable(0.001) # which looks for nothing closed, as that is under way
      end
      Fiber.schedule { read = reader.read(1) }
      Thread.new { sleep(0.05) && writer.write("x") }
    end
    assert_equal "x", read
  end

  def test_files_are_read_whole
    file do |path, content|
      assert_equal content, scheduled { File.binread(path) }
      assert_equal content.lines, scheduled { File.open(path, "rb", &:readlines) }
      assert_equal content[5_000, 1_000], scheduled { File.open(path, "rb") { |io| io.pread(1_000, 5_000) } }
      assert_equal [content[-10..], nil, ""], scheduled { File.open(path, "rb") { |io| io.seek(-10, IO::SEEK_END) && [io.read(99), io.read(1), io.read] } }
      assert_raises(EOFError) { scheduled { File.open(path) { |io| io.pread(1, content.bytesize) } } }
    end
  end

  def test_no_file_has_bytes_before_its_first
    file do |path, _|
      [-1, -2].each do |from|
        scheduled do
          File.open(path) do |io|
            assert_raises(Errno::EINVAL, from) { io.pread(4, from) }
            assert_equal 0, io.pos
          end
        end
      end
    end
  end

  def test_a_file_that_is_not_cached_is_read_on_the_pool
    pool = Headway::OffloadPool.new
    file do |path, content|
      evict(path)
      File.truncate(path, 2 * content.bytesize) # of a hole nothing is cached before it is read, whether the rest could be evicted or not
      File.open(path, "rb") do |io| # opened here: what opens it may be on the pool, too
        assert_equal content + "\0" * content.bytesize, scheduled(pool: pool) { io.read }
      end
      # Where the file system keeps everything in memory, there is nothing to wait for.
      assert_operator pool.stats.values_at(:ran, :inline).sum, :>, 0 unless in_memory?(path)
    end
  ensure
    pool&.close
  end

  # Each such read would ask for the hook again, until the disk has brought what is wanted.
  def test_a_file_that_is_not_cached_is_read_at_once_where_the_pool_hands_nothing_over
    within = deepest = 0
    pool = Headway::OffloadPool.new(mode: :never)
    file do |path, content|
      evict(path)
      File.open(path, "rb") do |io|
        parts = scheduled(pool:) do
          %i[io_read io_pread].each do |hook|
            Fiber.scheduler.define_singleton_method(hook) do |*arguments|
              deepest = [deepest, within += 1].max
              super(*arguments).tap { within -= 1 }
            end
          end
          [io.pread(50_000, 250_000), io.read]
        end
        assert_equal [content[250_000..], content], parts
      end
    end
    assert_equal 1, deepest
  ensure
    pool&.close
  end

  def test_streams_are_copied
    file do |path, content|
      copied = scheduled do
        reader, writer = IO.pipe
        Fiber.schedule { IO.copy_stream(path, writer) && writer.close }
        reader.binmode.read
      end
      assert_equal content, copied
    end
  end

  # io-event 1.11's selector, for one, asks the system for a descriptor of the process -1 then, and fails.
  def test_a_selector_is_not_asked_for_any_child_or_a_group
    codes = []
    looping do |scheduler|
      Fiber.schedule do
        scheduler.instance_variable_get(:@selector).define_singleton_method(:process_wait) { |*| Kernel.raise(Errno::EINVAL) }
        codes << Process.wait2(-spawn("exit 3", pgroup: true)).last.exitstatus
        spawn("exit 4")
        codes << Process.wait2.last.exitstatus
        spawn("exit 5")
        codes << Process.wait2(0).last.exitstatus
      end
    end
    assert_equal [3, 4, 5], codes
  end

  def test_processes
    codes = []
    looping do
      5.times { |number| Fiber.schedule { Process.wait2(spawn("exit #{number}")).then { |_, status| codes << status.exitstatus } } }
    end
    assert_equal [0, 1, 2, 3, 4], codes.sort
    assert_equal ["out\n", "err\n", true], scheduled { Open3.capture3("echo out; echo err >&2").then { |out, err, status| [out, err, status.success?] } }
    assert_equal "hello\n", scheduled { `echo hello` }
    assert scheduled { system("true") }
    assert_raises(Errno::ECHILD) { scheduled { Process.wait(2_000_000_000) } }
  end

  def test_a_process_that_stops
    stopped = scheduled do
      pid = spawn("sleep 60")
      Fiber.schedule { sleep(0.01) && Process.kill(:STOP, pid) }
      Fiber.schedule { sleep(10) && Process.kill(:KILL, pid) }.then { |limit| Process.wait2(pid, Process::WUNTRACED)[1].stopped?.tap { limit.kill } }
    ensure
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
    assert stopped
  end

  def test_a_process_that_runs_holds_nobody_up
    ticks = 0
    looping do
      reader, writer = pipe
      pid = spawn("cat", in: reader) # which ends when the writer is closed
      Fiber.schedule { Process.wait(pid) && pid = nil }
      Fiber.schedule { ((sleep 0.005) && (ticks += 1) > 3 && writer.close) while pid }
    end
    assert_operator ticks, :>, 3
  end

  def test_addresses
    addresses = scheduled { Addrinfo.getaddrinfo("localhost", 80, nil, :STREAM).map(&:ip_address) }
    assert_includes %w[127.0.0.1 ::1], addresses.first
    assert_raises(SocketError) { scheduled { TCPSocket.new("no-such-host.invalid", 80) } }
    assert_equal ["127.0.0.1"], Headway::FiberScheduler.new.address_resolve("127.0.0.1%lo")
  end

  # Of a name Ruby hands on what it was given.
  def test_a_name_may_be_what_becomes_a_string
    name = Object.new
    name.define_singleton_method(:to_str) { "localhost" }
    assert_includes %w[127.0.0.1 ::1], scheduled { Addrinfo.tcp(name, 80).ip_address }
  end

  def test_an_address_keeps_its_interface_and_takes_services_by_name
    asked = ["fe80::1%#{Socket.getifaddrs.first.name}", "127.0.0.1", "::1"].product([80, "http"])
    answers = lambda do
      asked.map { |host, service| Addrinfo.tcp(host, service).then { |address| [address.ip_address, address.ip_port] } rescue $!.message } # rubocop:disable Style/RescueModifier
    end
    assert_equal answers.call, scheduled(&answers)
  end

  # Ruby 3.4's own way to look at slow names: it waits for them where it is.
  SLOW_NAMES = RUBY_VERSION >= "3.4" ? { test_mode_settings: { delay: { ipv4: 500, ipv6: 500 } } }.freeze : {}.freeze

  def test_a_name_that_is_looked_up_for_a_connection_holds_nobody_up
    ticks = received = nil
    listening do |port|
      looping do
        Fiber.schedule { received = TCPSocket.new("localhost", port, **SLOW_NAMES).read }
        Fiber.schedule { ticks = 0.step.find { sleep(0.005) && received } }
      end
    end
    assert_equal "hello", received
    assert_operator ticks, :>, 20 unless SLOW_NAMES.empty?
  end

  def test_a_connection_to_a_name_can_be_given_up_and_fails_as_ever
    errors = listening do |port|
      scheduled do
        [assert_raises(Timeout::Error) { Timeout.timeout(0.01) { TCPSocket.new("localhost", port, **SLOW_NAMES) && sleep } },
         assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("localhost", 1) }]
      end
    end
    assert_includes errors.last.backtrace.join("\n"), "#{__FILE__}:#{__LINE__ - 3}:"
    await("the thread that was given up") { ours.empty? }
  end

  private

  def pipe = IO.pipe

  # @yieldparam port [Integer] where everybody is told hello
  def listening
    server = TCPServer.new("localhost", 0)
    thread = Thread.new { loop { server.accept.tap { |socket| socket << "hello" }.close } }
    yield server.addr[1]
  ensure
    thread&.kill&.join
    server&.close
  end

  def ours = Thread.list.select { |thread| thread.backtrace.to_a.any? { |line| line.include?("on_thread") } }

  def switches_of(thread) = Headway::Stats.of(thread).dig(:switches, :voluntary)

  def file
    content = Random.new(1).bytes(300_000)
    Tempfile.create("headway", binmode: true) do |file|
      file.write(content)
      file.flush
      yield file.path, content
    end
  end

  def in_memory?(path)
    return false unless File.exist?("/proc/self/mountinfo") # Linux has it: elsewhere all reads of files are the pool's

    device = File.stat(path).then { |stat| " #{stat.dev_major}:#{stat.dev_minor} " }
    File.foreach("/proc/self/mountinfo").any? { |line| line.include?(device) && line.match?(/ - (?:tmpfs|ramfs|rootfs) /) }
  end

  # Best effort: the rest of the test holds either way.
  def evict(path)
    system("dd", "of=#{path}", "oflag=nocache", "conv=notrunc,fdatasync", "count=0", err: File::NULL)
  end
end
