# frozen_string_literal: true

require_relative "../integrations/since"

module Headway
  class Rack
    # How long a request waited for a thread, by what a proxy in front of the server says of when it came there: in X-Request-Start, as
    # nginx, Apache, Heroku's router and others are told to send it. It is as true as the clocks of both machines.
    module QueueTime
      HEADER = "HTTP_X_REQUEST_START"
      # Since 1970, in any unit. Of several proxies the first one saw it first.
      SAID = /\A(?:t=)?(\d{10,19}(?:\.\d+)?)(?=,|\z)/
      # What Puma waited for the rest of the request, which the client took to send it: milliseconds.
      BODY = "puma.request_body_wait"
      # Beyond that a clock is wrong, or a client made it up.
      LONGEST = 3600
      private_constant :SAID, :BODY, :LONGEST

      # @param said [String] the header
      # @param env [Hash]
      # @return [Float, nil] seconds, at least 0; nil: it says nothing
      def self.of(said, env)
        return unless said.is_a?(String) && (match = SAID.match(said.b))

        waited = Integrations::Since.seconds(match[1].to_f) - env[BODY].to_f / 1000
        [waited, 0.0].max if waited.abs <= LONGEST
      end
    end
    private_constant :QueueTime
  end
end
