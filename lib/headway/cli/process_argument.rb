# frozen_string_literal: true

require_relative "../control/processes"

module Headway
  module CLI
    # The PID that `headway top` and `headway ctl` are given.
    module ProcessArgument
      PIDS = (1..0x7fff_ffff).freeze
      private_constant :PIDS

      class << self
        # @param text [String]
        # @return [Integer]
        # @raise [UsageError]
        def pid(text)
          number = text.match?(/\A\d{1,10}\z/) && text.to_i
          return number if number && PIDS.cover?(number)

          raise UsageError, "#{text.scrub.inspect[0, 60]} is no PID: give the number of a process (headway top lists them)"
        end

        # @yieldparam client [Control::Client]
        # @return what the block returns
        # @raise [UsageError] the process cannot be asked, or refuses
        def ask(pid)
          yield Control::Processes.find(pid)
        rescue Control::ClientError => error
          raise UsageError, error.message
        end
      end
    end
  end
end
