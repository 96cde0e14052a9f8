# frozen_string_literal: true

require "securerandom"

module Headway
  class Web
    # Whether a request that changes something comes from our own page. Three things must hold, each of which no page of another
    # site can bring about: the browser says that the request is from the same origin, the request has a header that such pages
    # cannot set, and the header repeats a cookie that they can neither read nor have sent along.
    module Origin
      COOKIE = "headway_web"
      HEADER = "HTTP_X_HEADWAY_TOKEN"
      TOKEN = /\A[\w-]{32}\z/.freeze
      PATH = %r{\A/[\w/.~%-]+\z}.freeze
      private_constant :COOKIE, :HEADER, :TOKEN, :PATH

      class << self
        # @param env [Hash]
        # @return [void]
        # @raise [Refused]
        def check(env)
          same_origin?(env) or raise Refused.new(403, "this request is not from Headway's own page")
          given = env[HEADER].to_s
          known = cookie(env)
          return if known && same?(given, known)

          raise Refused.new(403, "this page has grown old: load it again")
        end

        # @param env [Hash]
        # @return [Array(String, Hash)] the token for the page, and the headers that go with it
        def token(env)
          known = cookie(env)
          return [known, {}] if known

          token = SecureRandom.urlsafe_base64(24)
          path = env["SCRIPT_NAME"].to_s.b[PATH]
          [token, { "set-cookie" => "#{COOKIE}=#{token}; path=#{path || "/"}; httponly; samesite=strict#{"; secure" if https?(env)}" }]
        end

        private

        # Browsers leave Sec-Fetch-Site out where there is no TLS, but then they name the origin.
        def same_origin?(env)
          site = env["HTTP_SEC_FETCH_SITE"]
          return site == "same-origin" if site

          host = env["HTTP_HOST"].to_s.b
          !host.empty? && env["HTTP_ORIGIN"].to_s.b[%r{\Ahttps?://([^/]+)\z}, 1]&.casecmp?(host) == true
        end

        def cookie(env)
          value = env["HTTP_COOKIE"].to_s.b[/(?:\A|;)\s*#{COOKIE}=([^;\s]*)/, 1]
          value if value&.match?(TOKEN)
        end

        # In the same time wherever they differ.
        def same?(one, other)
          one.bytesize == other.bytesize && one.bytes.zip(other.bytes).inject(0) { |sum, (a, b)| sum | (a ^ b) }.zero?
        end

        def https?(env)
          env["rack.url_scheme"] == "https" || env["HTTP_X_FORWARDED_PROTO"].to_s.start_with?("https")
        end
      end
    end
  end
end
