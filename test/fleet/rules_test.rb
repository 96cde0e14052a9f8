# frozen_string_literal: true

require "test_helper"
require "headway"
require "metrics/promtool"
require "yaml"

# The rules that ship in fleet/, judged by Prometheus's own tools and by what Headway's metrics are really called.
class FleetRulesTest < Minitest::Test
  include Metrics::Promtool

  RULES = File.expand_path("../../fleet/headway.rules.yml", __dir__)

  def test_prometheus_takes_them
    output, status = Open3.capture2e("promtool", "check", "rules", RULES)
    assert_predicate status, :success?, output
  end

  def test_they_say_what_they_should
    output, status = Open3.capture2e("promtool", "test", "rules", File.expand_path("headway.test.yml", __dir__))
    assert_predicate status, :success?, output
  end

  def test_they_ask_for_metrics_that_exist
    Headway::Metrics.request("GET /", running: 1, ready: 1, suspended: 1)
    known = Headway::Metrics.text.scan(/^(\w+)[{ ]/).flatten.uniq
    rules = YAML.load_file(RULES)["groups"].flat_map { |group| group["rules"] }
    asked = rules.flat_map { |rule| rule["expr"].scan(/\b(?:ruby_gvl|headway)_\w+(?![\w:])/) }.uniq - recorded_parts(rules)
    refute_empty asked
    assert_empty asked - known
  end

  private

  # Names between colons in recorded names are none of ours.
  def recorded_parts(rules) = rules.filter_map { |rule| rule["record"] }.flat_map { |name| name.split(":") }.grep_v(/_(?:total|sum|bucket)\z/)
end
