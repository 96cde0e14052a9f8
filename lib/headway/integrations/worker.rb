# frozen_string_literal: true

module Headway
  module Integrations
    class << self
      # @return [Integer, String, nil] this process's number among its server's workers, where the server tells, or that it is their
      #   master. The next process in its place has it too; one that a worker forks has none
      def worker
        @worker if @numbered == ::Process.pid
      end

      # @param number [Integer, String]
      def worker=(number)
        @worker = number
        @numbered = ::Process.pid
      end
    end
  end
end
