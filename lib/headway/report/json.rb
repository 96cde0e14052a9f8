# frozen_string_literal: true

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
        output << Document.json(@document.to_h, pretty: true) << "\n"
      end
    end
  end
end
