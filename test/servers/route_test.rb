# frozen_string_literal: true

require "test_helper"
require "headway"
require "rack/mock_request"

# How requests are classed.
class RouteTest < Minitest::Test
  def test_classes_are_named_by_the_framework_and_bounded
    route = Headway::Rack::Route.new
    assert_equal "GET /users/:id", route.name(environment("action_dispatch.route_uri_pattern" => "/users/:id(.:format)"))
    assert_equal "POST /u/:name", route.name(environment("sinatra.route" => "POST /u/:name"))
    { "/api/u/x" => "GET /api/u/:name", "/api//v1/u/x/" => "GET /api/v1/u/:name", "/u/x" => "GET /u/:name" }.each do |path, name|
      assert_equal name, route.name(environment("sinatra.route" => "GET /u/:name", "PATH_INFO" => path)), "Rack::URLMap took its part back"
    end
    assert_equal "GET /f/*", route.name(environment("sinatra.route" => "GET /f/*", "PATH_INFO" => "/f/a/b"))
    assert_equal "GET /a", route.name(environment("action_dispatch.route" => Object.new, "PATH_INFO" => "/a")), "of a Rails to come"
    assert_equal "GET /a/:id/b", route.name(environment("PATH_INFO" => "/a/123/b"))
    assert_equal "GET /a2/b", route.name(environment("PATH_INFO" => "/a2/b"))
    assert_equal "OTHER /", route.name(environment("REQUEST_METHOD" => "PROPFIND", "PATH_INFO" => ""))
    assert_operator route.name(environment("PATH_INFO" => "/a" * 5000)).size, :<, 250
    assert_equal "GET (not found)", route.name(environment("PATH_INFO" => "/wp-admin"), 404)
    names = Array.new(2000) { |number| route.name(environment("PATH_INFO" => "/x#{number}")) }.uniq
    assert_operator names.size, :<=, 501
    assert_equal "(others)", names.last
  end

  # Whatever a framework says, no request fails for it.
  def test_what_is_no_route_s_name_is_left_out
    route = Headway::Rack::Route.new
    ["GET /caf\u00E9".encode(Encoding::ISO_8859_1), "GET /caf\xff", "GET /a".encode(Encoding::UTF_16LE), :"GET /a", 5, ["GET", "/a"]].each do |odd|
      ["sinatra.route", "action_dispatch.route_uri_pattern"].each do |said|
        env = environment(said => odd, "SCRIPT_NAME" => "/\u00E9", "PATH_INFO" => "/a")
        before = route.name(env)
        route.look(env)
        [before, route.name(env, 200)].each { |name| assert_match(%r{\AGET .*/}n, name.b, odd.inspect) }
      end
    end
    assert_equal "GET /\u00E9/a", route.name(environment("sinatra.route" => "GET /caf\xff", "SCRIPT_NAME" => "/\u00E9", "PATH_INFO" => "/a"))
  end

  def test_what_scanners_ask_for_takes_no_room_of_routes
    routed = environment("action_dispatch.route_uri_pattern" => "/users/:id(.:format)")
    answered = Headway::Rack::Route.new
    600.times { |number| answered.name(environment("PATH_INFO" => "/#{number}x"), 301) }
    under_way = Headway::Rack::Route.new
    600.times { |number| under_way.name(environment("PATH_INFO" => "/#{number}x")) }
    [answered, under_way].each { |route| assert_equal "GET /users/:id", route.name(routed, 200) }
    assert_equal "GET /fine", under_way.name(environment("PATH_INFO" => "/fine"), 200)
    names = Array.new(100) { |number| under_way.name(environment("PATH_INFO" => "/assets/#{number}x"), 200) }.uniq
    assert_operator names.size, :<, Headway::Metrics::WorkSeries::CLASSES, "there is room for routes among the classes of metrics"
  end

  def test_a_place_of_any_bytes_is_named
    route = Headway::Rack::Route.new
    names = ["/o/\u00E9%c3%a9", "/o/\xff%ff".b, "/o/%C3%A9/\xff"].flat_map do |script|
      [{ "action_dispatch.route_uri_pattern" => "/users/:id(.:format)", "action_dispatch.request.path_parameters" => { org: "\u00E9" } },
       { "sinatra.route" => "GET /users/:id" }].map do |framework|
        env = environment("SCRIPT_NAME" => script, "PATH_INFO" => "/users/\xC3\xA9".b, **framework)
        lead = route.name(env)
        route.look(env)
        [lead, route.name(env)]
      end
    end
    names.flatten!
    assert names.all?(&:valid_encoding?), names
    assert names.all? { |name| name.end_with?("/users/:id") }, names
    env = environment("SCRIPT_NAME" => "/o/%c3%a9/eng", "action_dispatch.route_uri_pattern" => "/users/:id(.:format)",
                      "action_dispatch.request.path_parameters" => { org: "\u00E9", id: "1" })
    route.look(env)
    assert_equal "GET /o/:org/eng/users/:id", route.name(env)
  end

  private

  def environment(more = {}) = Rack::MockRequest.env_for("/").merge(more)
end
