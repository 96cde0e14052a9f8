# frozen_string_literal: true

require "cgi/escape"

module Headway
  class Web
    # The one page, and the headers of everything that is answered.
    module Page
      TEMPLATE = File.read(File.join(__dir__, "page.html"), encoding: "UTF-8:-").freeze
      HEADERS = {
        "content-security-policy" => "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "x-content-type-options" => "nosniff", "referrer-policy" => "same-origin", "cross-origin-resource-policy" => "same-origin",
        "cache-control" => "no-store"
      }.freeze
      HEAD_BYTES = 4096 # the policy is among them
      private_constant :TEMPLATE, :HEAD_BYTES

      class << self
        # @param env [Hash]
        # @param assets [Assets]
        # @param controls [Boolean] whether settings may be changed
        # @return [Array] Rack's response
        def response(env, assets, controls:)
          token, headers = Origin.token(env)
          base = env["SCRIPT_NAME"].to_s.dup.force_encoding(Encoding::UTF_8).scrub
          values = { "BASE" => base, "ASSETS" => "#{base}/assets/#{assets.digest}", "TOKEN" => token, "CONTROLS" => controls.to_s,
                     "VERSION" => VERSION, "RUBY" => RUBY_VERSION }
          html = TEMPLATE.gsub(/\{\{(\w+)\}\}/) { CGI.escapeHTML(values.fetch($1)) }
          [200, { "content-type" => "text/html; charset=utf-8", "content-length" => html.bytesize.to_s, **headers }, [html]]
        end

        # A report is one file with a script of its own, which its policy names by digest; in a sandbox nothing in it belongs to our
        # origin. The policy is the file's, which another version may have made.
        #
        # @param path [String] a report
        # @return [String] the policy it is sent with
        def report_policy(path)
          own = File.read(path, HEAD_BYTES)[/Content-Security-Policy" content="([^"]+)"/, 1]
          "sandbox allow-scripts; #{own || "default-src 'none'"}; frame-ancestors 'none'"
        end
      end
    end
  end
end
