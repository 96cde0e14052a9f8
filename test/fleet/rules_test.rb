# frozen_string_literal: true

require "test_helper"
require "headway"
require "metrics/promtool"
require "json"
require "tempfile"
require "tmpdir"
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

  def test_rules_and_dashboard_ask_for_metrics_that_exist
    Headway::Metrics.request("GET /", running: 1, ready: 1, suspended: 1, queued: 1)
    assert_operator asked.size, :>, 10
    assert_empty asked - exported(Headway::Metrics.text) - recorded
  end

  def test_what_try_serves_has_all_that_rules_and_dashboard_ask_for
    Dir.mktmpdir do |directory|
      run = Harness::RubyProcess.eval(<<~RUBY, env: { "METRICS_DIRECTORY" => directory })
        require "headway"
        require "rack"
        Headway.start
        answers = Rack::MockRequest.new(Rack::Builder.parse_file("#{File.dirname(RULES)}/config.ru"))
        answers.get("/light", "HTTP_X_REQUEST_START" => "t=\#{Process.clock_gettime(Process::CLOCK_REALTIME)}") # as a proxy says it
        puts answers.get("/metrics").body
      RUBY
      assert_empty asked - exported(run.out) - recorded, run
    end
  end

  # Prometheus reads an expression as it reads a rule's.
  def test_prometheus_takes_the_dashboard
    rules = dashboard_expressions.each_with_index.map { |expression, i| { "record" => "panel:#{i}", "expr" => expression } }
    Tempfile.create(["panels", ".yml"]) do |file|
      file.write({ "groups" => [{ "name" => "panels", "rules" => rules }] }.to_yaml)
      file.flush
      output, status = Open3.capture2e("promtool", "check", "rules", file.path)
      assert_predicate status, :success?, output
    end
  end

  private

  def exported(text) = text.scan(/^(\w+)[{ ]/).flatten.uniq
  def recorded = rules.filter_map { |rule| rule["record"] }

  def asked
    expressions = rules.map { |rule| rule["expr"] } + dashboard_expressions
    expressions.join(" ").scan(/(?<![\w:])[\w:]*(?:ruby_gvl|headway_)[\w:]*/).uniq
  end

  def rules = YAML.load_file(RULES)["groups"].flat_map { |group| group["rules"] }

  # With Grafana's variables filled in.
  def dashboard_expressions
    JSON.parse(File.read(File.expand_path("grafana.json", File.dirname(RULES))))["panels"].flat_map do |panel|
      panel["targets"].map { |target| target["expr"].sub("$__rate_interval", "1m").sub("$job", ".*") }
    end
  end
end
