# frozen_string_literal: true

require "digest/sha2"

module Headway
  class Web
    # Scripts and style sheets, as they are; those that a report's page has, too, are its sources. Their address has a digest of all
    # of them in it, so that a browser may keep them for good.
    class Assets
      OWN = %w[app.js view.js lanes.js sections.js actions.js web.css icon.svg].freeze
      REPORT = %w[dom.js format.js histogram.js timeline/palette.js styles/base.css styles/tables.css styles/timeline.css].freeze
      OWN_DIRECTORY = File.expand_path("assets", __dir__)
      REPORT_DIRECTORY = File.expand_path("../../../report/src", __dir__)
      TYPES = { ".js" => "text/javascript; charset=utf-8", ".css" => "text/css; charset=utf-8", ".svg" => "image/svg+xml" }.freeze
      private_constant :OWN, :REPORT, :OWN_DIRECTORY, :REPORT_DIRECTORY, :TYPES

      # @return [Array<String>] where they all are
      def self.paths
        OWN.map { |name| File.join(OWN_DIRECTORY, name) } + REPORT.map { |name| File.join(REPORT_DIRECTORY, name) }
      end

      def initialize
        @files = (OWN + REPORT).zip(self.class.paths).to_h { |name, path| [name, File.binread(path).freeze] }.freeze
        @digest = Digest::SHA256.hexdigest(@files.to_a.join("\0"))[0, 16]
      end

      # @return [String]
      attr_reader :digest

      # @param digest [String] as the address has it: another version's worker may have made the page
      # @param name [String]
      # @param env [Hash]
      # @return [Array, nil] Rack's response
      def response(digest, name, env)
        body = @files[name]
        return unless body

        etag = %("#{@digest}")
        headers = { "etag" => etag, "cache-control" => digest == @digest ? "private, max-age=31536000, immutable" : "no-store" }
        return [304, headers, []] if env["HTTP_IF_NONE_MATCH"] == etag

        [200, { "content-type" => TYPES.fetch(File.extname(name)), "content-length" => body.bytesize.to_s, **headers }, [body]]
      end
    end
  end
end
