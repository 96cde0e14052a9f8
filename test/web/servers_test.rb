# frozen_string_literal: true

require "test_helper"
require "headway"
require "json"
require "harness/timing"
require "servers/rails_application"
require "servers/server_process"

# Headway::Web in real servers: two Puma workers, Rails.
class WebServersTest < Minitest::Test
  include Harness::Serving
  include Harness::Timing

  APP = <<~RUBY
    require "headway"
    map("/headway") do
      run Headway::Web.new(directory: "captures", controls: ->(env) { env["HTTP_X_USER"] == "admin" }) { |env| env["HTTP_X_USER"] }
    end
    run ->(_) { sleep 0.001; [200, {}, [Process.pid.to_s]] }
  RUBY

  RAILS = Harness::RailsApplication.text("action_controller", <<~RUBY) + "Shop.initialize!\nrun Shop\n"
    config.headway.recorder = { mode: :flight, events: 5000 }
    config.content_security_policy { |policy| policy.default_src :none }
    routes.append { mount Headway::Web.new(directory: "captures") { |env| ActionDispatch::Request.new(env).params["key"] != "wrong" } => "/ops/headway" }
  RUBY

  POLLERS = 1000
  USER = { "x-user" => "somebody" }.freeze
  ADMIN = { "x-user" => "admin" }.freeze

  def test_two_workers_of_puma
    puma
    pids = @puma.await("both workers") { found = workers; found if found.size == 2 }
    assert_equal "403", request(:get, "/headway/").code

    # Whichever is asked captures from any, and all list and send what one captured.
    pids.each { |pid| assert_equal "201", request(:post, "/headway/captures", USER, { pid: pid }).code }
    captures = @puma.await("both captures") { state["captures"].then { |rows| rows if rows.map { |row| row["pid"] }.sort == pids.sort } }
    name = captures.first["name"]
    bodies = Array.new(6) { request(:get, "/headway/captures/#{name}", USER).body }
    assert_equal [bodies.first], bodies.uniq
    assert_operator bodies.first.bytesize, :>, 100
    assert_equal "200", request(:get, "/headway/captures/#{name}/report", USER).code

    assert_equal "403", request(:post, "/headway/settings", USER, { pid: pids.first, quantum_ms: 7 }).code
    pids.each { |pid| assert_equal "200", request(:post, "/headway/settings", ADMIN, { pid: pid, quantum_ms: 7 }).code }
    @puma.await("the settings") { state["processes"].select { |process| pids.include?(process["pid"]) }.all? { |process| process["quantum_ms"] == 7 } }
    a_stopped_sibling_is_named(pids)
  end

  def test_a_thousand_pollers_are_answered_by_a_few_looks
    before = Process.getrlimit(:NOFILE)
    Process.setrlimit(:NOFILE, [before.last, 4 * POLLERS].min, before.last)
    puma(workers: 0)
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    sockets = Array.new(POLLERS) { TCPSocket.new("127.0.0.1", @port) }
    sockets.each { |socket| socket.write("GET /headway/state HTTP/1.0\r\nX-User: somebody\r\n\r\n") }
    answers = sockets.map(&:read)
    seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
    assert_equal ["200"], answers.map { |answer| answer[/\AHTTP\S+ (\d+)/, 1] }.uniq
    walls = answers.map { |answer| JSON.parse(answer.split("\r\n\r\n", 2).last)["processes"].first["wall"] }
    assert_operator walls.uniq.size, :<=, seconds + 2
    assert_equal "200", request(:get, "/").code
  ensure
    sockets&.each(&:close)
    Process.setrlimit(:NOFILE, *before)
  end

  def test_mounted_in_rails
    write("config.ru", RAILS)
    @port = Harness::ServerProcess.free_port
    server = serve(gem_program("puma"), "-t", "2:2", "-b", "tcp://127.0.0.1:#{@port}", env: { "RAILS_ENV" => "development", **sockets })
    server.await_output(/Use Ctrl-C to stop/)
    @base = "/ops/headway"
    page = request(:get, "/ops/headway")
    assert_equal "200", page.code
    assert_equal "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", page["content-security-policy"]
    assets = page.body.scan(%r{"(/ops/headway/assets/[^"]+)"}).flatten
    assert_equal ["200"], assets.map { |path| request(:get, path).code }.uniq
    assert_equal "403", request(:get, "/ops/headway?key=wrong").code
    assert_equal [server.pid], state("/ops/headway/state")["processes"].map { |process| process["pid"] }
    assert_equal "201", request(:post, "/ops/headway/captures", {}, { pid: server.pid }).code
    assert_equal "403", request(:post, "/ops/headway/settings", {}, { pid: server.pid, quantum_ms: 7 }).code
    name = JSON.parse(request(:post, "/ops/headway/captures", {}, { pid: server.pid }).body)["name"]
    report = request(:get, "/ops/headway/captures/#{name}/report")
    assert_match(/\Asandbox allow-scripts; default-src 'none'; script-src 'sha256-/, report["content-security-policy"])
  end

  def test_a_server_does_not_start_with_an_open_page
    write("config.ru", "require 'headway'\nmap('/headway') { run Headway::Web.new }\nrun ->(_) { [200, {}, []] }")
    server = serve(gem_program("puma"), "-e", "production", "-b", "tcp://127.0.0.1:#{Harness::ServerProcess.free_port}", env: sockets)
    refute_predicate server.wait, :success?
    assert_match(/Headway::Web has no block that says who may see it, .*RACK_ENV is "production"/, server.output)
  end

  private

  def puma(workers: 2)
    write("config.ru", APP)
    write("puma.rb", "plugin :headway\nheadway recorder: { mode: :flight, events: 5000 }\nthreads 2, 2\nworkers #{workers}\n" \
                     "worker_shutdown_timeout 2\n#{"preload_app!\n" if workers.positive?}")
    @port = Harness::ServerProcess.free_port
    @puma = serve(gem_program("puma"), "-C", "puma.rb", "-b", "tcp://127.0.0.1:#{@port}", env: { "RACK_ENV" => "production", **sockets })
    @puma.await_output(workers.zero? ? /Use Ctrl-C to stop/ : /Worker 1.*booted/)
  end

  # Of no other test, whose programs are in our process group, too.
  def sockets = { "HEADWAY_CONTROL_DIR" => File.join(@directory, "sockets") }

  def request(method, path, headers = {}, body = nil)
    Net::HTTP.start("127.0.0.1", @port, read_timeout: 20 * Harness::TimeLimit.seconds_scale) do |http|
      next http.get(path, headers) if method == :get

      http.post(path, JSON.generate(body), { "content-type" => "application/json", **own, **headers })
    end
  end

  # Each worker gives tokens of its own and takes the others'.
  def own
    @own ||= begin
      cookie = request(:get, "#{@base || "/headway"}/", USER)["set-cookie"][/headway_web=[^;]+/]
      { "cookie" => cookie, "x-headway-token" => cookie.split("=", 2).last, "sec-fetch-site" => "same-origin" }
    end
  end

  def state(path = "/headway/state") = JSON.parse(request(:get, path, USER).body)

  def workers = state["processes"].reject { |process| process["error"] }.map { |process| process["pid"] } - [@puma.pid]

  def a_stopped_sibling_is_named(pids)
    stopped = (pids - [Integer(request(:get, "/").body)]).first
    stop_process(stopped)
    row = @puma.await("the stopped worker's row") { state["processes"].find { |process| process["pid"] == stopped && process["error"] } }
    assert_equal "process #{stopped} doesn't answer: is it stopped?", row["error"]
  ensure
    Process.kill(:CONT, stopped)
  end
end
