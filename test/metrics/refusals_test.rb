# frozen_string_literal: true

require "harness/isolated_test"
require "headway"
require "metrics/open_telemetry_sdk"
require "socket"

# A family that a receiver refuses, as its name is taken, or is none for it: those after it are told all the same, and a notice names it
# once. With the real gems; each test in a process of its own.
class MetricsRefusalsTest < Harness::IsolatedTest
  include Metrics::OpenTelemetrySdk
  with_rubygems

  Adapters = Headway::Metrics::Adapters

  def test_a_family_that_prometheus_client_refuses_keeps_back_no_other
    require "prometheus/client"
    registry = Prometheus::Client::Registry.new
    registry.counter(:refused_total, docstring: "The application's.", labels: [:shop])
    adapter = Adapters::PrometheusClient.new(registry)
    notices = refused("refused_total for prometheus-client") { adapter.report(two_families("refused_total", { a: "b" })) }
    assert_includes notices, "labels must have the same signature"
    assert_equal({ {} => 3.0 }, registry.get(:told_total).values)
  end

  def test_a_family_that_yabeda_refuses_keeps_back_no_other
    require "yabeda"
    Yabeda.configure { histogram :refused_total, buckets: [1] }
    families = two_families("refused_total")
    Headway::Metrics.register(Struct.new(:families).new(families))
    Adapters::Yabeda.install
    Yabeda.configure!
    refused("refused_total for Yabeda") { Yabeda.collect! }
    assert_equal 3, Yabeda.told_total.get({})
  end

  def test_a_family_that_open_telemetry_refuses_keeps_back_no_other
    provider, exporter = open_telemetry
    adapter = Adapters::OpenTelemetry.new(provider)
    refused("1_refused_total for OpenTelemetry") { adapter.report(two_families("1_refused_total")) }
    exporter.pull
    assert_equal([["told", 3]], exporter.metric_snapshots.map { |snapshot| [snapshot.name, snapshot.data_points.first.value] })
  end

  def test_a_family_that_no_datagram_can_hold_keeps_back_no_other
    server = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
    to = "StatsD at 127.0.0.1:#{server.addr[1]}"
    adapter = Adapters::StatsD.new("127.0.0.1", server.addr[1])
    refused("refused_total for #{to}") { adapter.report(two_families("refused_total", { a: "b" * 70_000 })) }
    assert server.wait_readable(5)
    assert_equal "told_total:3|c", server.recv(100)
  ensure
    server&.close
  end

  private

  def two_families(name, labels = {})
    [Headway::Metrics::Family.new(name, :counter, "A.", { labels => 5 }),
     Headway::Metrics::Family.new("told_total", :counter, "B.", { {} => 3 })]
  end

  # The notice, after the block has run twice.
  def refused(which, &block)
    _, err = capture_io { 2.times(&block) }
    assert_match(/\Aheadway: #{which} failed and was left out: .+\n\z/, err)
    err
  end
end
