# frozen_string_literal: true

require "control/controlled_process"

# No client, however rude, keeps another one waiting or costs the process anything to speak of.
class ControlLimitsTest < Minitest::Test
  include ControlledProcesses

  PLACES = 16
  LONGEST = 4096 # bytes of a request
  # Seconds after which one that has said nothing may lose its place to one that waits: a little less than the server's.
  SILENCE = 0.2

  def setup
    super
    @path = sleeper.socket
  end

  def test_the_longest_request_and_one_that_is_longer
    assert_equal({ ping: 1 }.keys, ask(@path, "{\"ping\":true}".ljust(LONGEST - 1)).keys)
    socket = connect(@path)
    socket.write("{\"ping\":true}".ljust(LONGEST))

    assert_match(/the request is too long: 4096 bytes at the most/, answer(socket)[:error])
    assert hung_up?(socket, 5)
    assert ask(@path, { ping: true })[:ping]
  ensure
    socket&.close
  end

  # One that sends half a request, one that sends it byte by byte, and one that only sends. How long each may take, and one that
  # says nothing at all: the core's tests, where a second is shorter.
  def test_slow_clients_are_dropped_and_keep_nobody_waiting
    half, dripping, deaf = clients = Array.new(3) { connect(@path) }
    half.write('{"get":')
    await("all three are dropped", 30) do
      assert ask(@path, { ping: true })[:ping]
      write(dripping, " ")
      write(deaf, "{\"get\":\"stats\"}\n" * 100)
      hung_up?(half, 0.05) && write(dripping, " ") == :gone && write(deaf, "\n") == :gone
    end
  ensure
    clients&.each(&:close)
  end

  def test_hung_clients_keep_nobody_waiting
    hung = Array.new(PLACES * 3) { connect(@path) }
    hung.each_with_index { |socket, index| socket.write('{"get":') if index.odd? }
    10.times { assert asked({ ping: true })[:ping] }
  ensure
    hung&.each(&:close)
  end

  def test_many_clients_at_once_are_all_answered
    in_one_breath do
      clients = Array.new(PLACES * 3) { connect(@path) }
      clients.each { |socket| socket.write("{\"ping\":true}\n") }
    ensure
      clients&.each(&:close) if $!
    end.each do |socket|
      assert answer(socket)[:ping]
      socket.close
    end
    askers = Array.new(20) do
      Thread.new { Array.new(20) { asked({ get: "stats" })[:stats][:pid] }.uniq }
    end
    assert_equal [[sleeper.pid]], askers.map(&:value).uniq
  end

  def test_garbage
    random = Random.new(20_861)
    pieces = ["{", "}", "\"", "get", "set", "stats", ":", ",", "[", "]", "\\", "\\u12", "1e9", "-", "\n", "\0", "\xff", " ", "quantum_ms"]
    100.times do
      text = if random.rand(2).zero? then random.bytes(random.rand(1..6000))
             else Array.new(random.rand(1..300)) { pieces.sample(random: random) }.join.b
             end
      socket = connect(@path)
      begin
        socket.write(text)
        socket.close_write
        # Whatever comes back is an error, one a line.
        socket.read.to_s.each_line { |line| assert JSON.parse(line)["error"], line }
      rescue Errno::EPIPE, Errno::ECONNRESET
        nil
      ensure
        socket.close
      end
    end
    assert_equal "fair", ask(@path, { get: "settings" })[:settings][:policy]
  end

  def test_broken_requests_of_every_length
    whole = '{"set":{"quantum_ms":12.5e0,"policy":"quantum","preempt":"p\\u006fll"}}'
    socket = connect(@path)
    (0...whole.size).each do |length|
      socket.write("#{whole[0, length]}\n")
      assert answer(socket)[:error], whole[0, length]
    end
  ensure
    socket&.close
  end

  def test_clients_that_vanish
    100.times do |number|
      socket = connect(@path)
      socket.write("{\"get\":\"stats\"}\n"[0, number % 17])
      socket.close
    end
    assert ask(@path, { ping: true })[:ping]
    await("their places are free again") { descriptors <= 1 }
  end

  def test_answers_for_many_threads_are_bounded
    path = program("1100.times { Thread.new { sleep } }; ready; sleep").socket
    answer = stats(path)

    assert_equal 1101, answer[:process][:threads]
    assert_equal 1000, answer[:threads].size
    assert_equal 101, answer[:threads_left_out]
  end

  def test_a_client_that_goes_while_it_is_answered
    path = program("500.times { Thread.new { sleep } }; ready; sleep").socket
    20.times do
      socket = connect(path)
      socket.write("{\"get\":\"stats\"}\n" * 20)
      socket.read(1)
      socket.close
    end
    assert ask(path, { ping: true })[:ping]
  end

  def test_no_descriptor_is_left_for_a_client
    program = program(<<~RUBY)
      Process.setrlimit(:NOFILE, 64)
      files = []
      begin
        loop { files << File.open(File::NULL) }
      rescue Errno::EMFILE
        ready
      end
      cpu = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) }
      # Where the machine is taken away it may count as used: not each time.
      spent = Array.new(5) { before = cpu.call; sleep 0.2; cpu.call - before }
      files.each(&:close)
      puts spent.min
      sleep
    RUBY
    waiting = connect(program.socket)
    waiting.write("{\"ping\":true}\n")

    assert_operator Float(line_of(program)), :<, 0.04, "it doesn't go round for nothing"
    assert answer(waiting)[:ping]
  ensure
    waiting&.close
  end

  private

  # Connects and speaks in the block. Where this process got no processor in between, and so was taken for one that says nothing:
  # again.
  def in_one_breath
    loop do
      began = now
      spoken = begin
        yield
      rescue Errno::EPIPE, Errno::ECONNRESET
        raise if now - began < SILENCE
      end
      return spoken if now - began < SILENCE

      spoken&.each(&:close)
    end
  end

  # As {#ask}, among so many that one may have to go.
  def asked(request)
    socket, = in_one_breath { [connect(@path).tap { |socket| socket.write("#{JSON.generate(request)}\n") }] }
    answer(socket)
  ensure
    socket&.close
  end

  def write(socket, text)
    socket.write_nonblock(text, exception: false)
  rescue Errno::EPIPE, Errno::ECONNRESET
    :gone
  end

  # Of the server's clients: sockets beside the one it listens at.
  def descriptors
    directory = "/proc/#{sleeper.pid}/fd"
    skip "no /proc here" unless File.directory?(directory)
    Dir.children(directory).count { |name| File.readlink(File.join(directory, name)).start_with?("socket:") rescue false }
  end
end
