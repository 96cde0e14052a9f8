# frozen_string_literal: true

require "json"

module Headway
  module Report
    # The analysis as one JSON object, described in docs/report-json.md.
    class Json
      # @param document [Document]
      def initialize(document)
        @document = document
      end

      # @param output [IO]
      def write(output)
        output << JSON.pretty_generate(@document.to_h) << "\n"
      end
    end
  end
end
