# frozen_string_literal: true

require "fiber_scheduler/scheduled_by_async"
require "net/http"
require "openssl"
require "socket"

# Clients as programs use them, against real servers of the test's own, which run on threads without a scheduler.
class FiberSchedulerClientsTest < Minitest::Test
  include Scheduled

  CLIENTS = 20

  def test_net_http_requests_at_once
    serving(TCPServer.new("127.0.0.1", 0), at_once: CLIENTS) do |port|
      assert_at_once { |number| Net::HTTP.get(URI("http://localhost:#{port}/#{number}")) }
    end
  end

  def test_net_http_on_one_connection
    serving(TCPServer.new("127.0.0.1", 0)) do |port|
      answers = scheduled { Net::HTTP.start("127.0.0.1", port) { |http| Array.new(3) { |number| http.get("/#{number}").body } } }
      assert_equal %w[/0 /1 /2], answers
    end
  end

  def test_net_http_times_out
    silent = TCPServer.new("127.0.0.1", 0)
    assert_raises(Net::ReadTimeout) do
      scheduled { Net::HTTP.start("127.0.0.1", silent.addr[1], read_timeout: 0.05, max_retries: 0) { |http| http.get("/") } }
    end
    assert_raises(Timeout::Error) { scheduled { Timeout.timeout(0.05) { Net::HTTP.get(URI("http://127.0.0.1:#{silent.addr[1]}/")) } } }
  ensure
    silent&.close
  end

  def test_net_http_over_openssl
    serving(tls_server, at_once: CLIENTS) do |port|
      assert_at_once do |number|
        Net::HTTP.start("localhost", port, use_ssl: true, verify_mode: OpenSSL::SSL::VERIFY_NONE) { |http| http.get("/#{number}").body }
      end
    end
  end

  def test_an_openssl_server_under_the_scheduler
    answers = []
    looping do
      server = tls_server
      Fiber.schedule do
        5.times { server.accept.then { |peer| Fiber.schedule { peer.puts(peer.gets) || peer.close } } }
        server.close
      end
      5.times do |number|
        Fiber.schedule do
          socket = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", server.to_io.local_address.ip_port)).connect
          socket.puts(number.to_s)
          answers << socket.gets.to_i
          socket.close
        end
      end
    end
    assert_equal [0, 1, 2, 3, 4], answers.sort
  end

  # OpenSSL never asks for the hook; Headway.offload takes it off the loop.
  def test_key_generation_offloaded
    ticks = 0
    keys = []
    looping do
      Fiber.schedule { (sleep 0.001) && ticks += 1 until keys.size == 2 }
      2.times { Fiber.schedule { keys << Headway.offload { OpenSSL::PKey::RSA.generate(2048) } } }
    end
    assert_equal [true, true], keys.map(&:private?)
    assert_operator ticks, :>, 3
  ensure
    Headway::OffloadPool.default.close
  end

  private

  # One after another they would wait for ever.
  def assert_at_once
    answers = []
    looping { CLIENTS.times { |number| Fiber.schedule { answers << yield(number) } } }
    assert_equal Array.new(CLIENTS) { |number| "/#{number}" }.sort, answers.sort
  end

  # Answers every request with its path, a thread for each connection, but none before there are so many.
  def serving(server, at_once: 1)
    threads = []
    @missing = at_once
    @lock = Thread::Mutex.new
    @complete = Thread::Queue.new
    acceptor = Thread.new do
      Thread.current.report_on_exception = false
      loop { threads << Thread.new(server.accept) { |peer| answer(peer) } }
    rescue IOError, SystemCallError, OpenSSL::SSL::SSLError
      nil # closed
    end
    yield server.to_io.local_address.ip_port
  ensure
    server.close
    acceptor&.kill&.join
    threads.each { |thread| thread.kill.join }
  end

  def answer(peer)
    while (line = peer.gets)
      nil until peer.gets == "\r\n"
      @complete.close if @lock.synchronize { (@missing -= 1) <= 0 }
      @complete.pop
      path = line.split[1]
      peer.write("HTTP/1.1 200 OK\r\nContent-Length: #{path.bytesize}\r\n\r\n#{path}")
    end
  rescue IOError, SystemCallError, OpenSSL::SSL::SSLError
    nil
  ensure
    peer.close
  end

  def tls_server
    context = OpenSSL::SSL::SSLContext.new
    context.key, context.cert = KEY_AND_CERTIFICATE
    OpenSSL::SSL::SSLServer.new(TCPServer.new("127.0.0.1", 0), context)
  end

  KEY_AND_CERTIFICATE = OpenSSL::PKey::EC.generate("prime256v1").then do |key|
    certificate = OpenSSL::X509::Certificate.new
    certificate.version = 2
    certificate.serial = 1
    certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
    certificate.public_key = key
    certificate.not_before = Time.now - 60
    certificate.not_after = Time.now + 3600
    [key, certificate.sign(key, "SHA256")]
  end
  private_constant :KEY_AND_CERTIFICATE
end

if RUBY_VERSION >= "3.4" # before that there is no hook that Async's pool could be tried with
  class AsyncClientsTest < FiberSchedulerClientsTest
    include ScheduledByAsync
  end
end
