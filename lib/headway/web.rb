# frozen_string_literal: true

require "json"

require_relative "base"
require_relative "integrations/options"

module Headway
  class Web # named before its parts are, so that they don't ask for this file again
  end
end

require_relative "web/access"
require_relative "web/assets"
require_relative "web/captures"
require_relative "web/origin"
require_relative "web/page"
require_relative "web/processes"

module Headway
  # A page that shows this process and its siblings live, captures traces, and changes settings; a Rack application to mount.
  #
  #   map("/headway") { run Headway::Web.new { |env| admin?(env) } }                        # config.ru
  #   mount Headway::Web.new { |env| env["warden"].user&.admin? } => "/headway"             # config/routes.rb
  #
  # The block is asked at every request whether it may be answered. docs/web.md says the rest.
  class Web
    OPTIONS = Integrations::Options.new("Headway::Web", { controls: Integrations::Options::CALLABLE, directory: Captures::DIRECTORY },
                                        start: false)
    MOUNT = "headway.mount" # for Rack::Route: all that is asked for here is one class
    JSON_TYPE = "application/json"
    BODY_BYTES = 4096
    private_constant :OPTIONS, :MOUNT, :JSON_TYPE, :BODY_BYTES

    # A request that is answered with an error: its status, and a line for the user.
    class Refused < Error
      def initialize(status, message)
        super(message)
        @status = status
      end

      attr_reader :status
    end

    # @param controls [#call, nil] given env, whether this request may change policy and quantum, and start and stop flight recorders;
    #   nil: none may
    # @param directory [String, nil] where captures are kept, the same for all processes of the application; default: one in the
    #   system's directory for temporary files
    # @yield [env] whether this request may be answered; may be left out in development alone
    # @raise [SettingError] no block outside development, an option that isn't there, or a value that means nothing
    def initialize(**options, &authenticate)
      options = OPTIONS.check(options)
      @access = Access.new(authenticate, options[:controls])
      @captures = Captures.new(options[:directory])
      @processes = Processes.new
      @assets = Assets.new
    end

    # Rails lists what is mounted by it.
    # @return [String]
    def inspect
      "#<#{self.class}>"
    end

    # @param env [Hash] Rack's
    # @return [Array(Integer, Hash, #each)]
    def call(env)
      env[MOUNT] = env["SCRIPT_NAME"]
      status, headers, body = @access.allowed?(env) ? answer(env) : text(403, "#{@access.refusal}\n")
      headers = Page::HEADERS.merge(headers)
      return [status, headers, body] unless env["REQUEST_METHOD"] == "HEAD"

      body.close if body.respond_to?(:close)
      [status, headers, []]
    end

    private

    # What a request says is looked at as bytes, here and below: some servers take whatever bytes there are for UTF-8.
    def answer(env)
      path = env["PATH_INFO"].to_s.b
      case env["REQUEST_METHOD"]
      when "GET", "HEAD" then get(env, path)
      when "POST" then post(env, path)
      else text(405, "GET, HEAD or POST\n", "allow" => "GET, HEAD, POST")
      end
    rescue Refused => error
      json(error.status, { error: error.message })
    end

    def get(env, path)
      case path
      when "", "/" then Page.response(env, @assets, controls: @access.controls?(env))
      when "/state" then json(200, @processes.text { { captures: @captures.list } })
      when %r{\A/assets/(\w+)/([\w./]+)\z} then @assets.response($1, $2, env) || nothing
      when %r{\A/captures/([\w.-]+)/report\z} then found(@captures.report($1))
      when %r{\A/captures/([\w.-]+)\z} then found(@captures.download($1))
      else nothing
      end
    rescue Captures::Error => error # shown by itself, not by our page
      text(error.status, "#{error.message}\n")
    end

    def post(env, path)
      Origin.check(env)
      case path
      when "/captures" then json(201, capture(body_of(env)))
      when "/settings" then json(200, controlled(env) { |client, wanted| { settings: client.set(wanted.slice(:policy, :quantum_ms, :preempt)) } })
      when "/recorder" then json(200, controlled(env) { |client, wanted| { recorder: record(client, wanted[:on]) } })
      else nothing
      end
    rescue Captures::Error => error
      raise Refused.new(error.status, error.message)
    end

    def capture(wanted)
      { name: @captures.take(client(wanted)), captures: @captures.list }
    end

    def controlled(env)
      @access.controls?(env) or raise Refused.new(403, "nothing can be changed from here: see Headway::Web's option controls")
      wanted = body_of(env)
      process = client(wanted)
      begin
        yield(process, wanted).tap { @processes.forget }
      rescue Control::ClientError => error
        raise Refused.new(422, error.message)
      end
    end

    # A flight recorder without a file, which only captures look into. A stream is somebody's who wants all of it, unless its disk
    # was full.
    def record(client, on)
      [true, false].include?(on) or raise Refused.new(400, "on is #{on.inspect[0, 20]}: give true or false")
      recorder = client.recorder || {}
      return client.stop_recording if !on && recorder[:mode] != "stream"
      raise Refused.new(422, "process #{client.pid} streams to a file: whoever started that stops it") unless on

      end_failed(client) if recorder[:failure]
      client.record(mode: "flight")
    end

    def end_failed(client)
      client.stop_recording
    rescue Control::ClientError
      nil # it says what had failed
    end

    def client(wanted)
      @processes.client(wanted[:pid]) or raise Refused.new(404, "process #{wanted[:pid].inspect[0, 20]} is gone, or none of ours")
    end

    # JSON alone, which no form of another site can send.
    def body_of(env)
      env["CONTENT_TYPE"].to_s.start_with?(JSON_TYPE) or raise Refused.new(415, "send #{JSON_TYPE}")
      text = env["rack.input"]&.read(BODY_BYTES + 1).to_s
      raise Refused.new(413, "that is too long") if text.bytesize > BODY_BYTES

      wanted = JSON.parse(text, symbolize_names: true)
      wanted.is_a?(Hash) ? wanted : raise(Refused.new(400, "send a JSON object"))
    rescue JSON::ParserError, EncodingError
      raise Refused.new(400, "send a JSON object")
    end

    def found(response)
      response || nothing
    end

    def nothing
      text(404, "There is nothing here.\n")
    end

    def text(status, text, headers = {})
      [status, { "content-type" => "text/plain; charset=utf-8", "content-length" => text.bytesize.to_s, **headers }, [text]]
    end

    def json(status, value)
      text = value.is_a?(String) ? value : Web.json(value)
      [status, { "content-type" => JSON_TYPE, "content-length" => text.bytesize.to_s }, [text]]
    end

    # @return [String] JSON in which nothing can be taken for HTML
    def self.json(value)
      JSON.generate(value).gsub("<", '\u003c')
    end
  end
end
