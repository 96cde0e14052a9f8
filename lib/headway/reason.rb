# frozen_string_literal: true

module Headway
  # Why something failed, as its user is told.
  module Reason
    # @param error [Exception]
    # @return [String] the first line of its message, without what Ruby adds to the system's own words: its function and the path
    def self.of(error)
      error.message.lines.first.to_s.scrub.chomp.sub(/ @ \w+( - .*)?\z| - [a-z]+\z/, "")
    end
  end
  private_constant :Reason
end
