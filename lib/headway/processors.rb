# frozen_string_literal: true

require "etc"
require_relative "quota"

module Headway
  # How many processors this process has: those it may run on, or as many as its CPU quota (a container's, say) is worth.
  module Processors
    # @param quota [Quota, nil] the one there is
    # @return [Integer] with a quota, rounded up: how many processes are of use
    def self.count(quota = Quota.find)
      [Etc.nprocessors, quota&.processors&.ceil].compact.min
    end
  end
  private_constant :Processors
end
