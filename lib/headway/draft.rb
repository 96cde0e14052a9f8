# frozen_string_literal: true

module Headway
  # A file that is there whole or not at all: written beside its place and renamed into it.
  # @api private
  module Draft
    # @param path [String]
    # @param draft [String] where it is written first, in the same directory
    # @yieldparam draft [String]
    # @return what the block returns
    def self.write(path, draft = "#{path}.part")
      result = yield draft
      File.rename(draft, path)
      result
    ensure
      File.delete(draft) if File.exist?(draft) # also after an interrupt
    end
  end
end
