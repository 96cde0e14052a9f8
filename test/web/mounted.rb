# frozen_string_literal: true

require "test_helper"
require "headway"
require "fileutils"
require "json"
require "rack"
require "tmpdir"

# Headway::Web in this process, asked as a server would ask it; Rack::Lint watches.
module Mounted
  TOKEN = "t" * 32
  HOST = "shop.example"
  # What a browser sends with a request of our own page.
  OWN = { "HTTP_SEC_FETCH_SITE" => "same-origin", "HTTP_X_HEADWAY_TOKEN" => TOKEN, "HTTP_COOKIE" => "a=b; headway_web=#{TOKEN}",
          "CONTENT_TYPE" => "application/json" }.freeze
  ENVIRONMENTS = %w[RAILS_ENV RACK_ENV APP_ENV].freeze

  def setup
    super
    @folder = File.realpath(Dir.mktmpdir("headway-web"))
    @captures = File.join(@folder, "captures")
    @variables = ENV.to_h
    ENVIRONMENTS.each { |name| ENV.delete(name) }
    ENV["HEADWAY_CONTROL_DIR"] = File.join(@folder, "sockets")
  end

  def teardown
    Headway.stop
    ENV.replace(@variables)
    FileUtils.rm_rf(@folder)
    super
  end

  def web(controls: nil, directory: @captures, &block)
    block ||= proc { true }
    Headway::Web.new(controls: controls, directory: directory, &block)
  end

  def ask(web, method, path, env = {})
    Rack::MockRequest.new(Rack::Lint.new(web)).request(method, "http://#{HOST}/", "HTTP_HOST" => HOST, "SCRIPT_NAME" => "/headway",
                                                       "PATH_INFO" => path, **env)
  end

  def get(web, path, env = {}) = ask(web, "GET", path, env)

  def post(web, path, values, env = OWN)
    ask(web, "POST", path, { input: values.is_a?(String) ? values : JSON.generate(values), **env })
  end

  def state(web) = JSON.parse(get(web, "/state").body, symbolize_names: true)

  def error_of(response) = JSON.parse(response.body).fetch("error")
end
