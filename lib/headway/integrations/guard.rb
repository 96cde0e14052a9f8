# frozen_string_literal: true

require_relative "../notices"

module Headway
  module Integrations
    # Keeps a fault of ours away from the request or the job it would break.
    #
    # What another thread raises meanwhile (a timeout, a server that has to end) is taken for such a fault, and lost: so guard what can
    # fail, and nothing besides. It is not held back either, because threads that are started meanwhile would never get theirs.
    module Guard
      @said = {}

      class << self
        # Runs the block; an error in it is noted, once for each part, and the caller goes on.
        #
        # @param part [String] whose fault it is
        # @return what the block returns; nil after an error
        def guard(part)
          yield
        rescue StandardError => error
          note(part, error)
        end

        # Notes a fault for who rescues it without {guard}, once for each part.
        #
        # @return [nil]
        def note(part, error)
          return if @said[part]

          @said[part] = true
          Notices.add("#{part} failed and was left out: #{error.message.lines.first.to_s.chomp} " \
                      "(#{error.class}) at #{error.backtrace&.first}")
          nil
        end
      end
    end
  end
end
