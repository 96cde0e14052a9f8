# frozen_string_literal: true

# What `fleet/try` serves: /light waits, /heavy computes, /metrics is for Prometheus.

require "headway/metrics"

use Headway::Rack
map("/metrics") { run Headway::Metrics::Endpoint.new(directory: ENV.fetch("METRICS_DIRECTORY")) }
map("/light") { run ->(_) { [200, {}, [sleep(0.02).to_s]] } }
map("/heavy") { run ->(_) { [200, {}, [(1..1_500_000).sum { |number| number % 7 }.to_s]] } }
run ->(_) { [200, { "content-type" => "text/plain" }, ["/light /heavy /metrics\n"]] }
