# frozen_string_literal: true

require "control/controlled_process"

# No client, however rude, keeps another one waiting or costs the process anything to speak of.
class ControlLimitsTest < Minitest::Test
  include ControlledProcesses

  PLACES = 16
  LONGEST = 4096 # bytes of a request

  def setup
    super
    @path = program("Thread.new { sleep }; ready; sleep").socket
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

  def test_half_a_request_is_not_waited_for
    socket = connect(@path)
    socket.write('{"ping":')

    refute hung_up?(socket, 1)
    assert hung_up?(socket, 10)
  ensure
    socket&.close
  end

  def test_a_request_that_drips_is_not_waited_for
    socket = connect(@path)
    begun = now
    ended = await("the server hangs up") do
      socket.write(" ")
      hung_up?(socket, 0.1) && now
    rescue Errno::EPIPE
      now
    end
    assert_operator ended - begun, :<, 10
  ensure
    socket&.close
  end

  def test_a_client_that_says_nothing_is_dropped_in_the_end
    socket = connect(@path)

    refute hung_up?(socket, 3)
    assert hung_up?(socket, 20)
  ensure
    socket&.close
  end

  def test_hung_clients_keep_nobody_waiting
    hung = Array.new(PLACES * 3) { connect(@path) }
    hung.each_with_index { |socket, index| socket.write('{"get":') if index.odd? }
    10.times { assert ask(@path, { ping: true })[:ping] }
  ensure
    hung&.each(&:close)
  end

  def test_a_client_that_does_not_read_is_dropped
    socket = connect(@path)
    begun = now
    begin
      loop do
        written = socket.write_nonblock("{\"get\":\"stats\"}\n" * 100, exception: false)
        sleep 0.01 if written == :wait_writable
        assert_operator now - begun, :<, 20
        ask(@path, { ping: true })
      end
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil # as it should be
    end
    assert ask(@path, { ping: true })[:ping]
  ensure
    socket&.close
  end

  def test_many_clients_at_once_are_all_answered
    clients = Array.new(PLACES * 3) { connect(@path) }
    clients.each { |socket| socket.write("{\"ping\":true}\n") }
    clients.each do |socket|
      assert answer(socket)[:ping]
      socket.close
    end
    askers = Array.new(20) do
      Thread.new { Array.new(20) { ask(@path, { get: "stats" })[:stats][:pid] }.uniq }
    end
    assert_equal [[@programs.first.pid]], askers.map(&:value).uniq
  ensure
    clients&.each { |socket| socket.close unless socket.closed? }
  end

  def test_garbage
    random = Random.new(20_861)
    pieces = ["{", "}", "\"", "get", "set", "stats", ":", ",", "[", "]", "\\", "\\u12", "1e9", "-", "\n", "\0", "\xff", " ", "quantum_ms"]
    200.times do
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

  def test_answers_for_thousands_of_threads_are_bounded
    path = program("3000.times { Thread.new { sleep } }; ready; sleep").socket
    answer = stats(path)

    assert_equal 3001, answer[:process][:threads]
    assert_equal 1000, answer[:threads].size
    assert_equal 2001, answer[:threads_left_out]
  end

  private

  # Of the server's clients: sockets beside the one it listens at.
  def descriptors
    directory = "/proc/#{@programs.first.pid}/fd"
    skip "no /proc here" unless File.directory?(directory)
    Dir.children(directory).count { |name| File.readlink(File.join(directory, name)).start_with?("socket:") rescue false }
  end
end
