# frozen_string_literal: true

require "harness/trap_test"
require "json"
require "metrics/open_telemetry_sdk"
require "metrics/promtool"
require "minitest/mock"
require "socket"
require "tempfile"
require "tmpdir"

# Headway's metrics in other monitoring systems, with their real gems; each test in a process of its own.
class MetricsAdaptersTest < Harness::TrapTest
  include Metrics::OpenTelemetrySdk
  include Metrics::Promtool
  with_rubygems

  Adapters = Headway::Metrics::Adapters

  def work
    Headway.start
    beside_cpu_threads(1) { 10.times { sleep 0.001 } }
    Headway::Metrics.request("GET /", running: 0.01, ready: 0.002, suspended: 10)
  end

  def test_prometheus_client_adds_the_workers_up
    directory = Dir.mktmpdir("headway-store")
    require "prometheus/client"
    require "prometheus/client/data_stores/direct_file_store"
    require "prometheus/client/formats/text"
    Prometheus::Client.config.data_store = Prometheus::Client::DataStores::DirectFileStore.new(dir: directory)
    work
    reporter = Adapters::PrometheusClient.install(every: 60)
    assert_same reporter, Adapters::PrometheusClient.install(every: 60)
    reporter.report
    child = fork do
      3.times { Headway::Metrics.request("GET /", running: 0.01, ready: 0.002, suspended: 10) }
      reporter.report
      exit!(0)
    end
    Process.wait(child)
    reporter.report
    text = Prometheus::Client::Formats::Text.marshal(Prometheus::Client.registry)
    assert_nil promtool_complaints("check", "metrics", input: text.gsub(/^# HELP .* \n/) { _1.rstrip + "\n" })
    assert_match(/^ruby_gvl_request_wait_seconds_bucket\{request="GET \/",le="0.001"\} 0/, text)
    assert_match(/^ruby_gvl_request_wait_seconds_bucket\{request="GET \/",le="0.0025"\} 4/, text)
    assert_match(/^ruby_gvl_request_wait_seconds_count\{request="GET \/"\} 4/, text)
    assert_match(/^ruby_gvl_request_seconds_total\{request="GET \/",state="suspended"\} 40/, text)
    assert_equal 2, text.scan(/^ruby_gvl_threads\{.*state="running"/).size
    assert_operator text[/^ruby_gvl_wait_seconds_count (\d+)/, 1].to_i, :>, 10
  ensure
    reporter&.stop
    FileUtils.rm_rf(directory)
  end

  def test_a_gauge_that_is_gone_is_nothing
    require "prometheus/client"
    registry = Prometheus::Client::Registry.new
    adapter = Adapters::PrometheusClient.new(registry)
    Headway.start(quantum_ms: 50)
    adapter.report(Headway::Metrics.collect)
    [20, 20, 10].each do |quantum|
      Headway.quantum_ms = quantum
      adapter.report(Headway::Metrics.collect)
    end
    settings = registry.get(:headway_info).values.transform_keys { |labels| labels[:quantum_ms] }
    assert_equal({ "50" => 0, "20" => 0, "10" => 1 }, settings)
  end

  def test_yabeda
    require "yabeda"
    require "yabeda/test_adapter"
    adapter = Yabeda::TestAdapter.instance
    Yabeda.register_adapter(:test, adapter)
    work
    assert_same Adapters::Yabeda.install, Adapters::Yabeda.install
    Yabeda.configure!
    2.times { Yabeda.collect! }
    counters = adapter.counters.transform_keys(&:name)
    waits = Headway::Metrics.collect.find { |family| family.name == "ruby_gvl_wait_seconds" }.series[{}].count
    assert_includes 10..waits, counters.fetch(:ruby_gvl_wait_seconds_count)[{}]
    assert_in_delta 10, counters.fetch(:ruby_gvl_request_seconds_total)[{ request: "GET /", state: "suspended" }]
    assert_equal 1, adapter.gauges.transform_keys(&:name).fetch(:ruby_gvl_threads)[{ state: "running" }]
  end

  def test_open_telemetry
    provider, exporter = open_telemetry
    work
    reporter = Adapters::OpenTelemetry.install(meter_provider: provider, every: 60)
    2.times { reporter.report }
    exporter.pull
    found = exporter.metric_snapshots.to_h { |snapshot| [snapshot.name, snapshot] }
    assert_equal "s", found.fetch("cruby.gvl.wait_seconds.sum").unit
    assert_operator found.fetch("cruby.gvl.wait_seconds.count").data_points.first.value, :>=, 10
    suspended = found.fetch("cruby.gvl.request_seconds").data_points.find { |point| point.attributes["state"] == "suspended" }
    assert_in_delta 10, suspended.value
    assert_includes found.keys, "cruby.gvl.threads"
  ensure
    reporter&.stop
  end

  # Applications that have the API alone, whose provider does nothing.
  def test_an_adapter_names_the_gem_it_needs
    error = assert_raises(LoadError) { Adapters.need("nosuch/library", "nosuch-gem") }
    assert_equal "Headway's adapter needs the gem nosuch-gem: add it to the Gemfile", error.message
  end

  def test_open_telemetry_without_a_provider
    run = Harness::RubyProcess.eval("require 'headway'; Headway.start; reporter = Headway::Metrics::Adapters::OpenTelemetry.install; reporter.stop; p Headway.notices")
    assert_equal "[]\n", run.out, run.to_s
  end

  def test_statsd
    server = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
    work
    lines = { true => "ruby_gvl_request_seconds_total:10.0|c|#request:GET_/,state:suspended",
              false => "ruby_gvl_request_seconds_total.GET_/.suspended:10.0|c" }
    reporter = nil
    lines.each do |tags, line|
      reporter = Adapters::StatsD.install(port: server.addr[1], tags: tags, every: 60)
      reporter.report
      said = receive(server)
      assert_includes said, line
      whose = tags ? ":\\d+\\|g\\|#state:running,worker:#{Process.pid}" : "\\.running\\.#{Process.pid}:\\d+\\|g"
      assert(said.any? { |text| text.match?(/\Aruby_gvl_threads#{whose}\z/) }, "each process has a gauge of its own: #{said}")
      reporter.report
      refute_includes receive(server), line, "what was said is not said again"
      reporter.stop
    end
  ensure
    reporter&.stop
    server&.close
  end

  # localhost is ::1 first where /etc/hosts has both; and an address that can't be reached is none.
  def test_statsd_is_looked_for_where_its_servers_listen
    server = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
    port = server.addr[1]
    counted = [Headway::Metrics::Family.new("a_total", :counter, "A.", { {} => 3 })]
    %w[::1 255.255.255.255].each do |other|
      addresses = [other, "127.0.0.1"].map { |address| Addrinfo.udp(address, port) }
      resolving(addresses) { Adapters::StatsD.new("localhost", port).report(counted) }
      assert_equal ["a_total:3|c"], receive(server)
    end
  ensure
    server&.close
  end

  def test_statsd_is_told_later_what_came_while_its_host_was_not_known
    server = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
    adapter = Adapters::StatsD.new("no.such.host.invalid", server.addr[1])
    counted = [Headway::Metrics::Family.new("a_total", :counter, "A.", { {} => 3 })]
    assert_raises(SocketError) { adapter.report(counted) }
    adapter.instance_variable_set(:@host, "127.0.0.1")
    adapter.report(counted)
    assert_equal ["a_total:3|c"], receive(server)
  ensure
    server&.close
  end

  # Where a gauge with a sign is so much more or less than before, as in StatsD's own protocol.
  def test_statsd_is_told_a_gauge_below_zero
    server = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
    adapter = Adapters::StatsD.new("127.0.0.1", server.addr[1])
    below = [Headway::Metrics::Family.new("credit", :gauge, "C.", { { shop: "a" } => -5 })]
    2.times { adapter.report(below) }
    credit = receive(server).inject(7) do |before, line|
      number = line[/\Acredit:(.*)\|g\|#shop:a,worker:#{Process.pid}\z/, 1]
      number.match?(/\A[+-]/) ? before + Float(number) : Float(number)
    end
    assert_equal(-5, credit)
  ensure
    server&.close
  end

  def test_what_came_since_the_last_report_is_said_as_the_process_ends_a_forked_one_too_and_as_headway_stops
    server = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      Headway.start
      Headway::Metrics::Adapters::StatsD.install(port: #{server.addr[1]}, every: 60)
      count = ->(name) { Headway::Metrics.request(name, running: 0, ready: 0, suspended: 7) }
      count.("stopped")
      50.times { sleep 0.001 }
      puts Headway::Metrics.collect.find { |family| family.name == "ruby_gvl_wait_seconds" }.series[{}].count
      Headway.stop
      Headway.start
      count.("ended")
      Process.wait(fork { count.("forked") })
    RUBY
    assert run.success?, run
    said = receive(server)
    %w[stopped ended forked].each do |name|
      assert_equal 1, said.count("ruby_gvl_request_seconds_total:7.0|c|#request:#{name},state:suspended"), name
    end
    assert_operator said.sum { |line| line[/\Aruby_gvl_wait_seconds_count:(\d+)/, 1].to_i }, :>=, run.out.to_i
    assert_operator run.out.to_i, :>=, 50
  ensure
    server&.close
  end

  # They would stay as they were where they were told.
  def test_a_process_that_ends_has_no_threads_any_more
    reader, writer = IO.pipe
    Process.wait(fork do
      Headway.start
      Headway::Metrics::Reporter.new(to: "a pipe", every: 60) { |families| writer.write(JSON.generate(families.map { |each| [each.type, each.series.values] })) }.start
      exit
    end)
    writer.close
    gauges, others = JSON.parse(reader.read).partition { |type,| type == "gauge" }
    assert_equal [0], gauges.flat_map(&:last).uniq
    refute_empty others
  end

  def test_a_receiver_that_does_not_answer_keeps_no_last_report_from_another
    reader, writer = IO.pipe
    Process.wait(fork do
      Headway::Metrics::Reporter.new(to: "nobody", every: 60) { sleep }.start
      Headway::Metrics::Reporter.new(to: "a pipe", every: 60) { writer.write("told") }.start
      exit
    end)
    writer.close
    assert_equal "told", reader.read
  end

  # It counts as told.
  def test_a_stop_waits_for_the_report_under_way
    begun, told = Queue.new, []
    reporter = Headway::Metrics::Reporter.new(to: "somebody slow", every: 0.01) do
      begun << true
      sleep 0.2
      told << true
    end.start
    assert begun.pop(timeout: 20)
    reporter.stop
    assert_equal begun.size + 1, told.size
  end

  def test_a_receiver_that_does_not_answer_holds_up_no_end
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      Headway::Metrics::Reporter.new(to: "nobody", every: 60) { puts "asked"; $stdout.flush; sleep }.start
    RUBY
    assert run.success?, run
    assert_equal "asked\n", run.out
  end

  def test_a_receiver_that_fails_is_named_once_and_harms_nobody
    _, err = capture_io do
      reporter = Adapters::StatsD.install(host: "no.such.host.invalid", every: 60)
      3.times { reporter.report }
      reporter.stop
    end
    assert_match(/\Aheadway: metrics don't reach StatsD at no\.such\.host\.invalid:8125: .+\n\z/, err)
    [{ every: 0 }, { port: "8125" }, { port: 99_999 }, { host: nil }, { tags: "no" }].each do |options|
      assert_raises(Headway::SettingError, options.inspect) { Adapters::StatsD.install(**options) }
    end
  end

  def test_a_receiver_that_is_none_is_refused_in_a_line
    error = assert_raises(Headway::SettingError) { Adapters::PrometheusClient.install(registry: 5) }
    assert_equal "registry is 5: give a Prometheus::Client::Registry", error.message
    error = assert_raises(Headway::SettingError) { Adapters::OpenTelemetry.install(meter_provider: 5) }
    assert_equal "meter_provider is 5: give one of OpenTelemetry's", error.message
  end

  def test_a_receiver_whose_reasons_have_any_bytes_is_asked_again
    said = Queue.new
    _, err = capture_io do
      reporter = Headway::Metrics::Reporter.new(to: "nobody", every: 0.01) do
        said << true
        raise "caf\xe9"
      end.start
      2.times { assert said.pop(timeout: 20) }
      reporter.stop
    end
    assert_equal "headway: metrics don't reach nobody: caf\ufffd\n", err
  end

  def test_a_source_or_a_receiver_that_is_not_implemented_ends_no_reports
    reader, writer = IO.pipe
    source = Object.new.tap { |object| def object.families = raise(NotImplementedError, "none yet") }
    _, err = capture_io do
      Headway::Metrics.register(source)
      reports = 0
      reporter = Headway::Metrics::Reporter.new(every: 0.01, to: "a pipe") do
        reports += 1
        writer.puts(reports)
        raise LoadError, "no such file" if reports == 1
      end.start
      2.times { assert(reader.wait_readable(20)) && reader.gets }
      reporter.stop
    end
    assert_match(/^headway: the metrics of Object are missing: none yet$/, err)
    assert_match(/^headway: metrics don't reach a pipe: /, err)
  end

  def test_whatever_a_receiver_raises_ends_no_reports
    said = Queue.new
    _, err = capture_io do
      reporter = Headway::Metrics::Reporter.new(every: 0.01, to: "nobody") do
        said << true
        raise Exception, "odd" # as for want of memory
      end.start
      2.times { assert said.pop(timeout: 20) }
      reporter.stop
      Headway::Metrics::Reporter.report_last([reporter])
    end
    assert_equal "headway: metrics don't reach nobody: odd\n", err
  end

  def test_a_receiver_that_does_not_answer_holds_up_no_stop
    asked = Queue.new
    reporter = Headway::Metrics::Reporter.new(every: 0.01, to: "nobody") { asked << true && sleep }.start
    assert asked.pop(timeout: 20)
    stopping = Thread.new { reporter.stop }
    assert stopping.join(60), "it waits for who doesn't answer"
    assert_equal 1, asked.size, "it is asked a last time"
  ensure
    stopping&.kill
  end

  def test_a_forked_child_reports_too
    reader, writer = IO.pipe
    reporter = Headway::Metrics::Reporter.new(every: 0.01, to: "a pipe") { writer.write("#{Process.pid}\n") }.start
    child = fork { sleep }
    line = reader.gets until line.to_i == child
    assert_equal child, line.to_i
  ensure
    reporter&.stop
    Process.kill(:KILL, child)
    Process.wait(child)
  end

  # As it ends a child flushes what its parent had written by then.
  def test_what_is_reported_while_the_process_forks_is_not_written_twice
    reported, told = Queue.new, Tempfile.new
    parent = Process.pid
    reporter = Headway::Metrics::Reporter.new(every: 0.01, to: "a file", last: false) do
      next unless Process.pid == parent

      told.write("told\n")
      reported << true
      sleep 0.1
      told.flush
    end.start
    5.times { assert(reported.pop(timeout: 20)) && Process.wait(fork { nil }) }
    reporter.stop
    assert_equal 5 + reported.size, File.readlines(told.path).size
  ensure
    told&.close!
  end

  def test_a_receiver_that_does_not_answer_holds_up_no_fork
    asked = Queue.new
    reporter = Headway::Metrics::Reporter.new(every: 0.01, to: "nobody") { asked << true && sleep }.start
    assert asked.pop(timeout: 20)
    assert_operator elapsed { Process.wait(fork { exit!(true) }) }, :<, patience(5)
    assert_predicate $?, :success?
  ensure
    reporter&.stop
  end

  def test_a_receiver_may_fork
    statuses = Queue.new
    reporter = Headway::Metrics::Reporter.new(every: 60, to: "a child", last: false) { statuses << Process.wait2(fork { exit!(true) }).last }.start
    assert_operator elapsed { reporter.report }, :<, patience(5)
    assert_predicate statuses.pop(timeout: 20), :success?
  ensure
    reporter&.stop
  end

  def test_a_daemon_reports_too
    reader, writer = IO.pipe
    reporter = Headway::Metrics::Reporter.new(every: 0.01, to: "a pipe") { writer.write("#{Process.pid}\n") }.start
    child = fork do
      Process.daemon(true, true)
      writer.write("daemon #{Process.pid}\n")
      sleep
    end
    daemon = reader.gets[/\Adaemon (\d+)/, 1] until daemon
    line = reader.gets until line == "#{daemon}\n"
    assert_equal daemon, line.chomp
  ensure
    reporter&.stop
    Process.kill(:KILL, daemon.to_i) if daemon
    Process.wait(child) if child
  end

  private

  # A name that has these addresses, whichever way it is looked up.
  def resolving(addresses, &block)
    Addrinfo.stub(:udp, addresses.first) { Addrinfo.stub(:getaddrinfo, addresses, &block) }
  end

  def receive(server)
    texts = []
    texts << server.recv(2000) while server.wait_readable(texts.empty? ? 5 : 0) # all of a report is there when it returns
    texts.flat_map(&:lines).map(&:chomp)
  end
end
