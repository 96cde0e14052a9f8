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
      @gate.pop if env["PATH_INFO"] == "/slow"
      [200, {}, ["hello"]]
    end
    @server = Puma::Server.new(app, nil, { min_threads: 3, max_threads: 3, log_writer: Puma::LogWriter.null })
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

  private

  def await(what) = super(what, limit: 20, pause: 0.005)
end
