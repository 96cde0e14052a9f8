# frozen_string_literal: true

module Headway
  # Why something failed, as its user is told.
  module Reason
    # @param error [Exception] somebody else's, which may have anything for a message, in any encoding
    # @return [String] the first line of it, in UTF-8
    def self.line(error)
      error.message.to_s.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).lines.first.to_s.chomp
    end

    # @param error [Exception]
    # @return [String] the same, without what Ruby adds to the system's own words: its function, the path, a single word
    def self.of(error)
      line(error).sub(%r{ @ \w+( - .*)?\z| - (/.*|\S+)\z}, "")
    end
  end
  private_constant :Reason
end
