# frozen_string_literal: true

require "harness/trap_test"
require "socket"
require "tmpdir"

# Trap: a C library that cannot cope with EINTR.
class InterruptedCallTest < Harness::TrapTest
  ROUNDS = 5 # at the least, however busy the machine is

  test_under Harness::Modes::PREEMPTING, "files, directories and sockets under rapid preemption", quantum_ms: 1 do
    Dir.mktmpdir do |directory|
      40.times { |number| File.write(File.join(directory, number.to_s), "x" * 1000) }
      under_rapid_preemption do
        workers = Array.new(3) { Thread.new { use_files(directory, scale(1)) } } << Thread.new { use_sockets(scale(1)) }
        workers.each(&:join)
      end
    end
  end

  # Signals only ever go to the holder of the GVL; one that hits a thread just as
  # it leaves for a blocking call is possible, a stream of them is not.
  test_under %i[fair_signal quantum_signal], "calls without the gvl are hardly ever interrupted", quantum_ms: 5 do
    assert_operator interruptions(200), :<=, 10
  end

  # As SQLite does while its database is locked: it counts what it meant to sleep, not what it slept.
  test_under Harness::Modes::PREEMPTING, "what sleeps and keeps the gvl is interrupted once at most", quantum_ms: 5 do
    beside_io_threads(6, pause: 0.0003) do
      assert_operator Thread.new { VMFixture.sleep_holding_gvl(0.5) }.value, :<=, 1
    end
  end

  test_under %i[fair_poll quantum_poll observe], "calls without the gvl are never interrupted without signals" do
    assert_equal 0, interruptions(200)
  end

  test_under %i[fair_poll quantum_poll observe], "nor are those that keep it", quantum_ms: 5 do
    beside_io_threads(6, pause: 0.0003) do
      assert_equal 0, Thread.new { VMFixture.sleep_holding_gvl(0.5) }.value
    end
  end

  private

  def under_rapid_preemption(&)
    beside_cpu_threads(2) { beside_io_threads(4, pause: 0.0005, &) }
  end

  # Of so many blocking calls, each right after some computing that makes its thread worth preempting.
  def interruptions(calls)
    beside_io_threads(6, pause: 0.0003) do
      Array.new(2) do
        Thread.new do
          Array.new(calls / 2) do
            compute(0.006)
            VMFixture.sleep_uninterruptibly(0.001)
          end.sum
        end
      end.sum(&:value)
    end
  end

  def use_files(directory, seconds)
    deadline = now + seconds
    count = 0
    while now < deadline || count < ROUNDS
      raise "lost entries" unless Dir.children(directory).size == 40
      raise "lost matches" unless Dir.glob(File.join(directory, "*")).size == 40

      Dir.each_child(directory) { |name| raise "short read" unless File.read(File.join(directory, name)).size == 1000 }
      count += 1
    end
  end

  def use_sockets(seconds)
    deadline = now + seconds
    server = TCPServer.new("127.0.0.1", 0)
    echo = Thread.new { 1 while (client = server.accept) && IO.copy_stream(client, client) && client.close.nil? }
    count = 0
    while now < deadline || count < ROUNDS
      TCPSocket.open("127.0.0.1", server.addr[1]) do |socket|
        socket.write("y" * 50_000)
        socket.close_write
        raise "short echo" unless socket.read.size == 50_000
      end
      count += 1
    end
  ensure
    echo&.kill&.join
    server&.close
  end
end
