# frozen_string_literal: true

module Headway
  # A file that is there whole or not at all: written beside its place and renamed into it. Where others may write, too, a link of
  # theirs may lie beside it already: it is removed first, and who writes opens none ({NEW}).
  # @api private
  module Draft
    # How a draft is opened: what appears under its name meanwhile isn't ours.
    NEW = "wbx"

    # @param path [String]
    # @param draft [String] where it is written first, in the same directory
    # @yieldparam draft [String]
    # @return what the block returns
    def self.write(path, draft = "#{path}.part")
      File.delete(draft) if File.symlink?(draft) || File.exist?(draft) # also what a process that was killed has left
      result = yield draft
      File.rename(draft, path)
      result
    ensure
      File.delete(draft) if File.exist?(draft) # also after an interrupt
    end
  end
end
