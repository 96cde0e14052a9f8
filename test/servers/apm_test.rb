# frozen_string_literal: true

require "test_helper"
require "headway"
require "opentelemetry-sdk"
require "rack"

# What docs/servers.md says to do for the traces of an APM, with the real SDK of OpenTelemetry.
class ApmTest < Minitest::Test
  def setup
    skip Headway.unsupported_reason unless Headway.supported?
    page = File.read(File.expand_path("../../docs/servers.md", __dir__))
    ApmTest.class_eval(page[/^class GvlWait\n.*?^end\n/m]) unless ApmTest.const_defined?(:GvlWait)
    @exporter = OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter.new
    provider = OpenTelemetry::SDK::Trace::TracerProvider.new
    provider.add_span_processor(OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(@exporter))
    @tracer = provider.tracer("test")
  end

  def teardown
    Headway.stop if Headway.started?
  end

  def test_a_span_has_the_wait_of_its_request
    Headway.start(policy: :observe)
    waited = nil
    answer(lambda do |env|
      other = Thread.new { 200_000.times { nil } }
      3.times { Thread.pass }
      other.join
      waited = env["headway.request"].waiting
      [200, {}, ["x"]]
    end)
    assert_operator waited, :>, 0
    assert_operator told, :>=, waited * 1000
    assert_operator told, :<, 1000 * (waited + 60)
  end

  def test_without_headway_and_after_an_error_nothing_breaks
    answer(->(_) { [200, {}, ["x"]] })
    assert_nil told
    Headway.start(policy: :observe)
    assert_raises(KeyError) { answer(->(_) { raise KeyError }) }
    assert_kind_of Float, told
  end

  private

  def answer(app)
    tracer = @tracer
    traced = Class.new do
      define_method(:initialize) { |inner| @inner = inner }
      define_method(:call) { |env| tracer.in_span("request") { @inner.call(env) } }
    end
    stack = Rack::Builder.new do
      use Headway::Rack
      use traced
      use GvlWait
      run app
    end
    Rack::MockRequest.new(Rack::Lint.new(stack.to_app)).get("/")
  end

  def told = @exporter.finished_spans.last.attributes&.[]("gvl.wait_ms")
end
