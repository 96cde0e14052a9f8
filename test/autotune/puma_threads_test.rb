# frozen_string_literal: true

require "test_helper"
require "headway"
require "net/http"
require "puma"
require "puma/server"
require "headway/autotune"
require "headway/puma"
require "harness/timing"

# The threads of a real Puma as a knob.
class PumaThreadsTest < Minitest::Test
  include Harness::Timing

  def setup
    Puma::Server.prepend(Headway::Puma::Server)
    @gate = Queue.new
    app = lambda do |env|
      env["puma.mark_as_io_bound"].call if env["QUERY_STRING"] == "io"
      @gate.pop if env["PATH_INFO"] == "/slow"
      [200, {}, ["hello"]]
    end
    @server = Puma::Server.new(app, nil, { min_threads: 3, max_threads: 3, max_io_threads: 3, log_writer: Puma::LogWriter.null })
    @port = @server.add_tcp_listener("127.0.0.1", 0).addr[1]
    @server.run
    @threads = Headway::Puma::Threads.new(@server, nil)
  end

  def teardown
    @gate.close
    @clients&.each(&:join)
    @server.stop(true)
  end

  def test_fewer_and_more
    assert_equal [3, 1..3], [@threads.value, @threads.range]
    @threads.value = 1
    await("one thread") { @server.running == 1 }
    assert_equal [1, 1], [@threads.value, @server.min_threads]
    assert_equal "hello", Net::HTTP.get("127.0.0.1", "/", @port)
    @threads.value = 3
    assert_equal [3, 3], [@server.max_threads, @server.min_threads]
    @clients = Array.new(3) { Thread.new { Net::HTTP.get("127.0.0.1", "/slow", @port) } }
    await("three at a time") { @gate.num_waiting == 3 }
  end

  def test_busy_threads_end_when_they_are_free_and_the_backlog_is_seen
    @clients = Array.new(5) { Thread.new { Net::HTTP.get("127.0.0.1", "/slow", @port) } }
    await("two that wait") { @gate.num_waiting == 3 && @threads.backlog == 2 }
    @threads.value = 2
    @threads.value = 1
    assert_equal 3, @server.running
    5.times { @gate << true }
    assert_equal ["hello"] * 5, @clients.map(&:value)
    await("one thread") { @server.running == 1 }
    assert_equal 0, @threads.backlog
  end

  # Puma 8.0.2 counts threads that were bound to I/O as spawned when they have ended: trimmed for each, none would be left.
  def test_threads_bound_to_io_are_none_of_them
    @clients = Array.new(6) { Thread.new { Net::HTTP.get("127.0.0.1", "/slow?io", @port) } }
    await("three more than the most") { @gate.num_waiting == 6 }
    6.times { @gate << true }
    assert_equal ["hello"] * 6, @clients.map(&:value)
    await("three again") { workers == 3 }
    @threads.value = 2
    await("two") { workers == 2 }
    sleep 0.1
    assert_equal 2, workers
    assert_equal "hello", Net::HTTP.get("127.0.0.1", "/", @port)
  end

  # As with fork_worker, where worker 0 stops its server, forks, and has it serve again.
  def test_a_server_that_serves_again_has_what_it_was_configured_with
    @threads.value = 1
    @server.begin_restart(true)
    @server.run
    again = Headway::Puma::Threads.new(@server, nil)
    assert_equal [3, 1..3], [again.value, again.range]
    assert_equal [3, 3], @server.instance_variable_get(:@thread_pool).then { |pool| [pool.min, pool.max] }
    again.value = 1
    again.value = 3
    assert_equal 3, @server.min_threads
  end

  private

  def workers
    pool = @server.instance_variable_get(:@thread_pool)
    pool.with_mutex { pool.instance_variable_get(:@processors).count(&:alive?) }
  end

  def await(what) = super(what, limit: 20, pause: 0.005)
end
