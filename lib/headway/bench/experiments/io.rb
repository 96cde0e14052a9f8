# frozen_string_literal: true

require "net/http"
require "openssl"
require "uri"

module Headway
  module Bench
    # HTTP requests by one thread and by several, which gains much.
    class Io < WorkSharing
      PURPOSE = "HTTP requests one after another and at once (in the environment: URL, REQ=64, CONC=16)"
      DEFAULTS = { "url" => nil, "requests" => 64, "concurrency" => 16, "port" => 0 }.freeze
      SERVER_MS = 50
      MODES = %w[sequential concurrent].freeze

      class << self
        def options(parser, settings)
          parser.on("--port N", Options::Port, "port of the local server (default: any that is free)") do |port|
            settings["port"] = port
          end
        end

        def settings_from(env)
          { "url" => env["URL"], "requests" => count(env, "REQ", 1_000_000), "concurrency" => count(env, "CONC", 1_000) }.compact
        end
      end

      # Without a URL there is a server of our own.
      def prepare(_interpreter, &block)
        return reach(config["url"], &block) if config["url"]

        Server.run(delay_ms: SERVER_MS, port: config["port"]) do |port|
          config.update("url" => "http://127.0.0.1:#{port}/", "server_ms" => SERVER_MS, "port" => port)
          yield
        end
      end

      def measure(arm, _cell)
        run_program("io", arm, config, limit_s: 120 + (30 * config["requests"]))
      end

      private

      def threads = [config["concurrency"], config["requests"]].min

      # Asks once before anything is measured: an address that doesn't answer, or answers with an error, is the commonest mistake.
      def reach(text)
        uri = URI.parse(text)
        raise URI::InvalidURIError unless uri.is_a?(URI::HTTP) && !uri.host.to_s.empty?

        status = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == "https", open_timeout: 10, read_timeout: 30) do |http|
          http.request(Net::HTTP::Get.new(uri)).code
        end
        raise UsageError, "URL is #{text}, which answers with status #{status}: give one that answers 2xx or 3xx" if status.match?(/\A[^23]/)

        yield
      rescue URI::InvalidURIError
        raise UsageError, "URL is #{text.inspect}: give one such as http://127.0.0.1:3000/"
      rescue SystemCallError, SocketError, Timeout::Error, EOFError, OpenSSL::SSL::SSLError, Net::ProtocolError, Net::HTTPBadResponse => e
        raise Error, "#{text} cannot be reached: #{e.message}"
      end
    end
  end
end
