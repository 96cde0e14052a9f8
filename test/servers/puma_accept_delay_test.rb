# frozen_string_literal: true

require "test_helper"
require "headway"
require "puma"
require "puma/cluster_accept_loop_delay"
require "headway/puma"
require "harness/timing"
require "servers/server_process"

# Workers of a Puma in which threads compute leave connections to others.
class PumaAcceptDelayTest < Minitest::Test
  include Harness::Serving
  include Harness::Timing

  # /compute answers at once, and goes on for as long as somebody listens.
  APP = <<~RUBY
    compute = lambda do |out|
      out << Process.pid.to_s
      5.times { Thread.new { loop { 1000.times { } } } }
      loop { 1_000_000.times { } && out << "." }
    end
    run ->(env) { [200, {}, env["PATH_INFO"] == "/compute" ? Enumerator.new(&compute) : [Process.pid.to_s]] }
  RUBY

  def setup
    super
    Headway::Puma::AcceptDelay.join(Puma)
  end

  def teardown
    @over = true
    @threads&.each(&:join)
    Headway.stop
    super
  end

  def test_the_more_threads_compute_the_longer_and_then_it_accepts_freely
    assert_in_delta own, delay.calculate(**busy), 1e-9
    Headway.start
    assert_in_delta own, delay.calculate(**busy), 1e-9
    compute(2)
    await("both wait") { delay.calculate(**busy) >= 0.004 }
    compute(6)
    await("all wait") { delay.calculate(**busy) >= 0.01 }
    assert_operator delay.calculate(**busy), :<=, 0.01
    await("half as long") { delay(0.0025).calculate(**busy).between?(0.004, 0.005) }
    waits = delay(1)
    assert_operator waits.calculate(**busy), :>=, 0.4
    assert_in_delta own(1), waits.calculate(**busy), 1e-9
    %i[quantum observe].each do |policy|
      Headway.policy = policy
      assert_in_delta own, delay.calculate(**busy), 1e-9, policy
    end
    Headway.policy = :fair
    await("it waits again") { delay.calculate(**busy) >= 0.004 }
    Headway.stop
    assert_in_delta own, delay.calculate(**busy), 1e-9
  end

  def test_connections_go_to_the_worker_that_has_time
    @port = Harness::ServerProcess.free_port
    write("config.ru", APP)
    write("config.rb", "threads 3, 3\nbind 'tcp://127.0.0.1:#{@port}'\nplugin :headway\nworkers 2\nworker_shutdown_timeout 3\n")
    @puma = serve(gem_program("puma"), "-C", "config.rb", "config.ru")
    @puma.await_output(/Worker 1.*booted/)
    TCPSocket.open("127.0.0.1", @port) do |socket|
      socket.write("GET /compute HTTP/1.1\r\nHost: test\r\n\r\n")
      socket.gets("\r\n\r\n")
      computes = socket.readpartial(100)[/^\d{2,}/] # after a chunk's length
      answers = Array.new(40) { sleep(0.03) && get(@port).body }
      assert_operator answers.count { _1 != computes }, :>=, 28, answers.tally.inspect
    end
  end

  private

  def busy = { busy_threads_plus_todo: 1, max_threads: 5 }

  # Puma's own.
  def own(max_delay = 0.005) = max_delay.to_f / (25 * 5)

  def delay(max_delay = 0.005) = Puma::ClusterAcceptLoopDelay.new(workers: 2, max_delay: max_delay)

  def compute(count)
    (@threads ||= []).concat(Array.new(count) { Thread.new { nil until @over } })
  end
end
