# frozen_string_literal: true

module Headway
  # Why something failed, as its user is told.
  module Reason
    # @param error [Exception] somebody else's, which may have anything for a message, in any encoding
    # @return [String] the first line of it, in UTF-8
    def self.line(error)
      utf8(error.message).lines.first.to_s.chomp
    rescue StandardError, ScriptError => fault # of a message that is computed
      "its message raises #{fault.class}"
    end

    # @param error [Exception]
    # @return [String] what it was and where, likewise
    def self.fault(error)
      "#{line(error)} (#{error.class}) at #{utf8(error.backtrace&.first)}"
    end

    # @param text [Object] whose words may be in any encoding, as a path's may
    # @return [String]
    def self.utf8(text)
      text.to_s.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
    end

    # @param error [Exception]
    # @return [String] the same, without what Ruby adds to the system's own words: its function, the path, a single word
    def self.of(error)
      line(error).sub(%r{ @ \w+( - .*)?\z| - (/.*|\S+)\z}, "")
    end
  end
  private_constant :Reason
end
