# frozen_string_literal: true

require "test_helper"
require "headway"
require "rack"
require "harness/timing"
require "metrics/promtool"
require "metrics/puma_server"

# The Rack application that Prometheus scrapes, in a real Puma.
class MetricsEndpointTest < Minitest::Test
  include Harness::Timing
  include Metrics::Promtool

  SINGLE = <<~RUBY
    require "headway"
    Headway.start
    looks = Headway::Metrics::Counter.new("looks_total", help: "Looks.", labels: [], most: 1)
    looks.define_singleton_method(:families) { add; super() }
    Headway::Metrics.register(looks)
    map("/metrics") { run Headway::Metrics::Endpoint.new }
    run ->(_) { [200, {}, ["hello"]] }
  RUBY

  CLUSTER = <<~RUBY
    map("/metrics") { run Headway::Metrics::Endpoint.new(directory: "metrics") }
    run ->(_) { [200, {}, [Process.pid.to_s]] }
  RUBY

  SCRAPES = 1000

  def test_answers_what_prometheus_understands
    Metrics::PumaServer.run(SINGLE) do |server|
      response = server.get("/metrics")
      assert_equal "200", response.code
      assert_equal "text/plain; version=0.0.4; charset=utf-8", response["content-type"]
      assert_valid_metrics(response.body.force_encoding(Encoding::UTF_8))
      assert_match(/^headway_info\{.*\} 1$/, response.body)
      assert_equal "200", server.get("/metrics/").code
      assert_equal "404", server.get("/metrics/more").code
      assert_equal "405", Net::HTTP.post(URI("http://127.0.0.1:#{server.port}/metrics"), "", "content-type" => "text/plain").code
      Net::HTTP.start("127.0.0.1", server.port) { |http| assert_nil http.head("/metrics").body }
    end
  end

  def test_an_answer_to_head_has_no_body_whatever_it_is
    broken = Headway::Metrics::Endpoint.new.tap { |endpoint| endpoint.instance_variable_set(:@answer, nil) }
    [[Headway::Metrics::Endpoint.new, "/", 200], [Headway::Metrics::Endpoint.new, "/more", 404], [broken, "/", 500]].each do |endpoint, path, status|
      answer = Rack::MockRequest.new(Rack::Lint.new(endpoint)).head(path)
      assert_equal [status, ""], [answer.status, answer.body]
    end
  end

  def test_a_thousand_scrapes_at_once_are_answered_by_a_few_looks
    before = Process.getrlimit(:NOFILE)
    Process.setrlimit(:NOFILE, [before.last, 4 * SCRAPES].min, before.last)
    Metrics::PumaServer.run(SINGLE) do |server|
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      sockets = Array.new(SCRAPES) { TCPSocket.new("127.0.0.1", server.port) }
      sockets.each { |socket| socket.write("GET /metrics HTTP/1.0\r\n\r\n") }
      answers = sockets.map(&:read)
      seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
      assert_equal [SCRAPES, "200"], [answers.size, answers.map { |answer| answer[/\AHTTP\S+ (\d+)/, 1] }.uniq.join(",")]
      looks = answers.map { |answer| Integer(answer[/^looks_total (\d+)/, 1]) }.max
      assert_operator looks, :<=, seconds + 2
      assert_equal "hello", server.get("/").body
    ensure
      sockets&.each(&:close)
    end
  ensure
    Process.setrlimit(:NOFILE, *before)
  end

  def test_one_worker_answers_for_all_and_those_that_ended_are_gone
    Metrics::PumaServer.run(CLUSTER, config: "workers 2\nthreads 2, 2\npreload_app!\nrequire 'headway'\n" \
                                             "before_worker_boot { Headway::Metrics.worker = \"p\#{Process.pid}\" }\n" \
                                             "before_worker_boot { Headway.start }") do |server|
      text = await_workers(server, "both") { |names| names.size == 2 }
      assert_valid_metrics(text)
      assert_equal 1, text.scan("# TYPE ruby_gvl_wait_seconds histogram").size
      killed = server.get("/").body
      assert_includes workers_in(text), "p#{killed}"
      Process.kill(:KILL, Integer(killed))
      await_workers(server, "another one in its place") { |names| names.size == 2 && !names.include?("p#{killed}") }
    end
  end

  # That of a cluster that preloads has the endpoint, too: what averages over workers has to know it.
  def test_a_master_is_told_from_its_workers
    Metrics::PumaServer.run(CLUSTER, config: "workers 2\nthreads 2, 2\npreload_app!\nplugin :headway") do |server|
      assert_valid_metrics(await_workers(server, "0, 1 and master") { |names| names == %w[0 1 master] })
    end
  end

  def test_a_directory_that_cannot_be_is_refused_in_a_line
    ["/proc/nothing", 7, "", File.join(__FILE__, "below")].each do |directory|
      error = assert_raises(Headway::SettingError) { Headway::Metrics::Endpoint.new(directory: directory) }
      assert_includes error.message, "directory is #{directory.inspect}: give"
      assert_equal 1, error.message.lines.size
    end
  end

  private

  # @yield [Array<String>] the workers that the text tells of
  def await_workers(server, what)
    found = nil
    await("workers: #{what}", limit: 40, pause: 0.2, details: -> { found }) do
      text = server.get("/metrics").body.force_encoding(Encoding::UTF_8)
      text if yield(found = workers_in(text))
    end
  end

  def workers_in(text) = text.scan(/^headway_info\{worker="(\w+)".*\} \d$/).flatten.sort
end
