# frozen_string_literal: true

module Headway
  module Integrations
    class << self
      # @return [Integer, nil] this process's number among its server's workers, where the server tells. The next process in its place
      #   has it too
      attr_accessor :worker
    end
  end
end
