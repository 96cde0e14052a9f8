# frozen_string_literal: true

require "json"

module Headway
  module Report
    # The page: one file with the analysis and every lane in it. A lane is bytes that the core made and the page reads,
    # so a million segments cost Ruby one string.
    class Html
      PAGE = File.join(__dir__, "page.html")
      DATA = '"__HEADWAY_DATA__"'
      LANES = "__HEADWAY_LANES__"
      private_constant :DATA, :LANES

      # @param document [Document]
      # @param page [String] path of the template
      def initialize(document, page: PAGE)
        @document = document
        @page = page
      end

      # @param output [IO]
      # @raise [Report::Error] when the template is not what was built
      def write(output)
        before, between, after = parts
        bytes = String.new(encoding: Encoding::BINARY)
        data = @document.to_h.merge(lanes: append(@document.trace.lanes, :thread, bytes),
                                    gc_lanes: append(@document.trace.gc_lanes, :process, bytes))
        output << before << escape(JSON.generate(data)) << between << [bytes].pack("m0") << after
      end

      private

      def parts
        before, rest = File.read(@page, encoding: "UTF-8:-").split(DATA, 2)
        between, after = rest.to_s.split(LANES, 2)
        raise Error, "#{@page} is no page of this version: reinstall headway" unless after

        [before, between, after]
      rescue SystemCallError
        raise Error, "the page's template #{@page} cannot be read: reinstall headway"
      end

      # @return [Array<Hash>] where in the bytes each lane is
      def append(lanes, whose, bytes)
        lanes.map do |lane|
          offset = bytes.bytesize
          bytes << lane[:bytes]
          { whose => lane[whose], start_s: lane[:start_s], segments: lane[:segments],
            offset: offset, length: lane[:bytes].bytesize }
        end
      end

      # In a script element nothing but `<` can end it or change how it is read; in JSON it only stands in strings. The
      # two line separators are no line ends in JSON but were in JavaScript.
      def escape(json)
        json.gsub(/[<\u2028\u2029]/, "<" => '\u003c', "\u2028" => '\u2028', "\u2029" => '\u2029')
      end
    end
  end
end
