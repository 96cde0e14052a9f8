# frozen_string_literal: true

require "etc"
require_relative "quota"

module Headway
  # How many processors this process has: those it may run on, or as many as its CPU quota (a container's, say) is worth.
  module Processors
    # @return [Integer] with a quota, rounded up: how many processes are of use
    def self.count
      [Etc.nprocessors, Quota.find&.processors&.ceil].compact.min
    end
  end
  private_constant :Processors
end
