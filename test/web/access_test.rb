# frozen_string_literal: true

require "web/mounted"

# Who gets in, and what changes nothing.
class WebAccessTest < Minitest::Test
  include Mounted

  def test_without_a_block_it_is_for_development_alone
    [{}, { "RACK_ENV" => "production" }, { "RACK_ENV" => "test" }, { "RAILS_ENV" => "production", "RACK_ENV" => "development" },
     { "RAILS_ENV" => "development", "APP_ENV" => "staging" }].each do |variables|
      ENVIRONMENTS.each { |name| ENV[name] = variables[name] }
      error = assert_raises(Headway::SettingError, variables) { Headway::Web.new }
      assert_includes error.message, "Headway::Web has no block that says who may see it"
      assert_equal 1, error.message.lines.size
      variables.each { |name, value| assert_includes error.message, "#{name} is #{value.inspect}" }
      Headway::Web.new { true }
    end
    [{ "RACK_ENV" => "development" }, { "RAILS_ENV" => "development", "RACK_ENV" => "development" }].each do |variables|
      ENVIRONMENTS.each { |name| ENV[name] = variables[name] }
      assert_equal 200, get(Headway::Web.new(directory: @captures), "/", "HTTP_HOST" => "localhost:3000").status
    end
  end

  def test_without_a_block_a_name_that_may_be_a_strangers_gets_nothing
    ENVIRONMENTS.each { |name| ENV[name] = "development" }
    open = Headway::Web.new(directory: @captures)
    ["localhost", "shop.localhost:3000", "shop.test", "127.0.0.1:9292", "10.0.0.7", "[::1]:3000"].each do |host|
      assert_equal 200, get(open, "/state", "HTTP_HOST" => host).status, host
    end
    ["evil.example", "127.0.0.1.evil.example:3000", "localhost.evil.example"].each do |host|
      response = get(open, "/state", "HTTP_HOST" => host)
      assert_equal 403, response.status, host.inspect
      assert_includes response.body, "Without a block that says who may see it, this page is shown as localhost"
    end
    assert_equal 200, get(web, "/state", "HTTP_HOST" => "shop.example").status
  end

  # As tunnels do that make a developer's machine public.
  def test_without_a_block_a_name_that_a_proxy_was_asked_by_counts_too
    ENVIRONMENTS.each { |name| ENV[name] = "development" }
    open = Headway::Web.new(directory: @captures)
    ask = ->(forwarded) { get(open, "/state", "HTTP_HOST" => "localhost:3000", "HTTP_X_FORWARDED_HOST" => forwarded).status }
    ["", "shop.test", "shop.test, 127.0.0.1:9292"].each { |forwarded| assert_equal 200, ask[forwarded], forwarded }
    ["shop.example", "shop.example,shop.test", "shop.test, shop.example"].each { |forwarded| assert_equal 403, ask[forwarded], forwarded }
    assert_equal 200, get(web, "/state", "HTTP_X_FORWARDED_HOST" => "shop.example").status
  end

  def test_options_that_mean_nothing
    { { control: 1 } => "control is no option of Headway::Web: give controls or directory", { controls: true } => "controls is true: give a lambda",
      { directory: 7 } => "directory is 7: give a path", { directory: "" } => "directory is \"\": give a path" }.each do |options, message|
      assert_equal message, assert_raises(Headway::SettingError) { Headway::Web.new(**options) { true } }.message
    end
    assert_empty state(web(directory: Pathname(@captures)))[:captures] # as Rails.root.join gives it
    Dir.mkdir(@captures, 0o755)
    assert_match(/directory is ".*captures": .*can be entered by others: it takes one of your own/,
                 assert_raises(Headway::SettingError) { web }.message)
  end

  # It would list its scripts and styles.
  def test_rails_lists_its_routes_with_one_line_of_it
    assert_equal ["#<Headway::Web>", "#<Headway::Metrics::Endpoint>"], [web.inspect, Headway::Metrics::Endpoint.new.inspect]
  end

  def test_the_block_is_asked_at_every_request
    web = web { |env| env["HTTP_X_USER"] == "admin" }
    %w[/ /state /assets/x/app.js /captures/x /nothing].each { |path| assert_equal 403, get(web, path).status, path }
    assert_equal 403, post(web, "/captures", { pid: 1 }).status
    assert_equal 200, get(web, "/", "HTTP_X_USER" => "admin").status
    assert_raises(ArgumentError) { get(web { raise ArgumentError, "the application's own" }, "/") }
  end

  def test_every_answer_forbids_what_the_page_does_not_need
    responses = %w[/ /state /nothing].map { |path| get(web, path) } + [get(web { false }, "/"), post(web, "/captures", {}, {})]
    responses.each do |response|
      assert_equal "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", response["content-security-policy"]
      assert_equal %w[nosniff no-store], response.headers.values_at("x-content-type-options", "cache-control")
    end
    page = get(web, "/").body
    refute_match(/<style|style=|\son\w+=|javascript:|<script(?! type="module" src=)/i, page)
  end

  def test_a_request_from_elsewhere_changes_nothing
    web = web(controls: ->(_) { true })
    strangers = [
      OWN.merge("HTTP_SEC_FETCH_SITE" => "cross-site"), OWN.merge("HTTP_SEC_FETCH_SITE" => "same-site"), OWN.merge("HTTP_SEC_FETCH_SITE" => "none"),
      OWN.except("HTTP_SEC_FETCH_SITE"), OWN.except("HTTP_SEC_FETCH_SITE").merge("HTTP_ORIGIN" => "http://evil.example"),
      OWN.except("HTTP_SEC_FETCH_SITE").merge("HTTP_ORIGIN" => "null"), OWN.except("HTTP_SEC_FETCH_SITE").merge("HTTP_ORIGIN" => "http://#{HOST}.evil.example"),
      OWN.except("HTTP_X_HEADWAY_TOKEN"), OWN.except("HTTP_COOKIE"), OWN.merge("HTTP_X_HEADWAY_TOKEN" => "u" * 32), OWN.merge("HTTP_COOKIE" => "headway_web="),
      OWN.merge("HTTP_COOKIE" => "headway_web=x", "HTTP_X_HEADWAY_TOKEN" => "x")
    ]
    strangers.each { |env| %w[/captures /settings /recorder].each { |path| assert_equal 403, post(web, path, { pid: Process.pid }, env).status, env } }
    refute_path_exists @captures
    # Ours are let through to what they ask of a process that is none of ours.
    [OWN, OWN.except("HTTP_SEC_FETCH_SITE").merge("HTTP_ORIGIN" => "https://#{HOST}")].each do |env|
      assert_equal 404, post(web, "/captures", { pid: 1 }, env).status
    end
  end

  def test_get_changes_nothing_and_other_verbs_are_refused
    %w[/captures /settings /recorder].each { |path| assert_equal 404, get(web, path, OWN).status }
    %w[PUT DELETE PATCH OPTIONS].each do |verb|
      assert_equal [405, "GET, HEAD, POST"], ask(web, verb, "/captures", OWN).then { |response| [response.status, response["allow"]] }
    end
    assert_equal ["", "200"], ask(web, "HEAD", "/").then { |response| [response.body, response.status.to_s] }
  end

  def test_the_token_is_the_cookie
    fresh = get(web, "/")
    token = fresh["set-cookie"][/\Aheadway_web=([\w-]{32}); path=\/headway; httponly; samesite=strict\z/, 1]
    assert_includes fresh.body, %(data-token="#{token}")
    again = get(web, "/", "HTTP_COOKIE" => "headway_web=#{token}")
    assert_nil again["set-cookie"]
    assert_includes again.body, %(data-token="#{token}")
    assert_match(/; secure\z/, get(web, "/", "HTTP_X_FORWARDED_PROTO" => "https")["set-cookie"])
    refute_includes get(web, "/", "HTTP_COOKIE" => %(headway_web="><script>)).body, "><script>"
  end

  # A cookie of another application on this host, say. What comes by HTTP/2 is in UTF-8 with Falcon, whatever Rack::Lint says of that.
  def test_any_bytes_are_answered
    ["\xff", "\xff".b, "\u00E9", "\u00E9".b, "\0"].each do |odd|
      [{ "SCRIPT_NAME" => "/#{odd}/headway" }, { "HTTP_COOKIE" => "a=#{odd}; headway_web=#{TOKEN}" }].each do |more|
        assert_equal [200, true], bare(web, "GET", "/", more).then { |status, page| [status, page.valid_encoding?] }
      end
      assert_equal 404, bare(web, "GET", "/captures/#{odd}").first
      assert_equal 415, bare(web, "POST", "/captures", **OWN, "HTTP_COOKIE" => "a=#{odd}; #{OWN["HTTP_COOKIE"]}", "CONTENT_TYPE" => odd).first
      assert_equal 403, bare(web, "POST", "/captures", "HTTP_ORIGIN" => "http://#{odd}").first
    end
    ENV["RACK_ENV"] = "development"
    assert_equal 403, bare(Headway::Web.new, "GET", "/", "HTTP_HOST" => "\xff.test").first
  end

  def test_bodies_that_mean_nothing
    { "" => 400, "[]" => 400, "{" => 400, "\xff" => 400, "{\"pid\":\"1\"}" => 404, "{}" => 404, "x" * 5000 => 413 }.each do |body, status|
      assert_equal status, post(web, "/captures", body).status, body[0, 20]
    end
    assert_equal 415, post(web, "/captures", "pid=1", OWN.merge("CONTENT_TYPE" => "application/x-www-form-urlencoded")).status
  end

  def test_settings_are_changed_only_where_the_application_allows_it
    Headway.start
    [nil, ->(_) { false }, ->(env) { env["HTTP_X_USER"] == "admin" }].each do |controls|
      web = web(controls: controls)
      assert_equal 403, post(web, "/settings", { pid: Process.pid, quantum_ms: 20 }).status
      assert_equal 403, post(web, "/recorder", { pid: Process.pid, on: true }).status
      assert_includes get(web, "/").body, 'data-controls="false"'
    end
    assert_equal 100, Headway.quantum_ms
    refute_predicate Headway::Recorder, :recording?
    web = web(controls: ->(env) { env["HTTP_X_USER"] == "admin" })
    admin = OWN.merge("HTTP_X_USER" => "admin")
    assert_includes get(web, "/", admin).body, 'data-controls="true"'
    assert_equal 200, post(web, "/settings", { pid: Process.pid, quantum_ms: 20, policy: "quantum" }, admin).status
    assert_equal [20, :quantum], [Headway.quantum_ms, Headway.policy]
    bad = post(web, "/settings", { pid: Process.pid, quantum_ms: 0 }, admin)
    assert_equal [422, "quantum_ms is 0: give milliseconds from 1 to 4294967, such as 10"], [bad.status, error_of(bad)]
    assert_equal 422, post(web, "/settings", { pid: Process.pid, record: "/etc/passwd" }, admin).status
    assert_equal 404, post(web, "/settings", { pid: Process.ppid, quantum_ms: 20 }, admin).status
  end

  private

  def bare(web, method, path, env = {})
    status, _, body = web.call("REQUEST_METHOD" => method, "SCRIPT_NAME" => "/headway", "PATH_INFO" => path, "HTTP_HOST" => HOST, **env)
    [status, body.join]
  end
end
