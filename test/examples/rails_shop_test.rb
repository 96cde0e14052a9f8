# frozen_string_literal: true

require "test_helper"
require "headway/trace"
require "json"
require "net/http"
require "servers/server_process"

# The example application, started as its README says.
class RailsShopTest < Minitest::Test
  include Harness::Serving

  RUN = File.join(Harness::ServerProcess::ROOT, "examples/rails_shop/run")
  LOAD = File.join(Harness::ServerProcess::ROOT, "examples/rails_shop/load")
  FORM = { "content-type" => "application/x-www-form-urlencoded" }.freeze

  def test_every_route_and_a_page_of_what_happened
    page = File.join(@directory, "stall.html")
    shop("--observe", "--report", page)
    assert_equal "text/html", answer("/").content_type
    assert_equal 20, JSON.parse(answer("/items.json").body).size
    item = answer("/items/7.json")
    assert_match(/gvl-wait;dur=/, item["server-timing"])
    assert_equal({ "id" => 7, "cents" => 359 }, JSON.parse(item.body).slice("id", "cents"))
    assert_match(/\$3\.59/, answer("/items/7").body)
    assert_equal "\x89PNG".b, answer("/catalogue.png").body[0, 4]
    order_and_label
    assert_equal "404", get(@port, "/items/999").code
    end_shop
    assert_match(/<html/, File.read(page))
  end

  def test_stock
    shop("--stock")
    assert_nil answer("/items/7.json")["server-timing"]
    load = serve(LOAD, "40", "20", program: true, env: { "PORT" => @port.to_s, "RUBY" => RbConfig.ruby })
    assert_predicate load.wait, :success?, load.output
    assert_match(%r{^/items/7\.json +\d+ requests: p50 +\d+\.\d ms, p95 }, load.output)
    end_shop
  end

  def test_bad_usage
    { %w[--fast] => /unknown argument --fast: give --stock/, %w[--report] => /--report needs a file/,
      %w[--stock --report x.html] => /--report needs Headway/ }.each do |arguments, message|
      run = serve(RUN, *arguments, program: true)
      assert_equal 2, run.wait.exitstatus
      assert_match message, run.output
    end
  end

  def teardown
    Process.kill(:KILL, puma) if puma # what runs it may not be it
  rescue Errno::ESRCH
    nil
  ensure
    super
  end

  private

  def puma = @shop&.output&.[](/PID: (\d+)/, 1)&.to_i

  def shop(*arguments)
    @port = Harness::ServerProcess.free_port
    env = { "PORT" => @port.to_s, "SHOP_DATA" => @directory, "RUBY" => RbConfig.ruby, "HEADWAY" => nil }
    @shop = Bundler.with_unbundled_env { serve(RUN, *arguments, program: true, env: env) }
    @shop.await_output(/Use Ctrl-C to stop/)
  end

  def answer(path) = get(@port, path).tap { |response| assert_equal "200", response.code, "#{path}\n#{@shop.output}" }

  def order_and_label
    refused = Net::HTTP.post(URI("http://127.0.0.1:#{@port}/orders.json"), "item_id=7&amount=0", FORM)
    assert_equal "422", refused.code
    order = Net::HTTP.post(URI("http://127.0.0.1:#{@port}/orders.json"), "item_id=7&amount=2", FORM)
    assert_equal "201", order.code
    path = "/orders/#{JSON.parse(order.body)["id"]}"
    @shop.await("the label") { JSON.parse(answer("#{path}.json").body)["labelled"] }
    assert_equal "\x89PNG".b, answer("#{path}/label").body[0, 4]
    assert_match(/Vase 7/, answer(path).body)
  end

  # Puma's own process, so that what watches it lives to write the page.
  def end_shop = @shop.stop(:INT, pid: puma)
end
