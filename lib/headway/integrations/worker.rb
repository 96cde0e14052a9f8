# frozen_string_literal: true

module Headway
  module Integrations
    class << self
      # @return [Integer, nil] this process's number among its server's workers, where the server tells. The next process in its place
      #   has it too; one that a worker forks has none
      def worker
        @worker if @numbered == ::Process.pid
      end

      # @param number [Integer]
      def worker=(number)
        @worker = number
        @numbered = ::Process.pid
      end
    end
  end
end
