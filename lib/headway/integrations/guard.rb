# frozen_string_literal: true

require_relative "../notices"
require_relative "../reason"

module Headway
  module Integrations
    # Keeps a fault of ours away from the request or the job it would break.
    #
    # What another thread raises meanwhile (a timeout, a server that has to end) would be taken for such a fault, and lost. So where
    # that may come, which is in requests and jobs, our part is {masked}. What the user has us call there, a route or a subscriber, can't
    # be: it may block, or start threads.
    module Guard
      HELD_BACK = { Object => :never }.compare_by_identity.freeze # so the VM makes no copy of it
      private_constant :HELD_BACK
      @said = {}

      class << self
        # Runs the block; an error in it is noted, once for each part, and the caller goes on.
        #
        # @param part [String] whose fault it is
        # @return what the block returns; nil after an error
        def guard(part)
          yield
        rescue StandardError, ScriptError => error
          note(part, error)
        end

        # The same, and what other threads raise comes after it. For a block that is short, doesn't block, as fibers share their thread's
        # mask, and starts no thread that doesn't take the mask off, as it would never get its own.
        #
        # @param part (see .guard)
        # @return (see .guard)
        def masked(part)
          fault = nil
          Thread.handle_interrupt(HELD_BACK) do
            yield
          rescue StandardError, ScriptError => error
            fault = error
            nil
          end
        ensure
          note(part, fault) if fault # not under the mask: it writes, which may block
        end

        # Notes a fault for who rescues it without {guard}, once for each part.
        #
        # @return [nil]
        def note(part, error)
          return if @said[part]

          @said[part] = true
          Notices.add("#{part} failed and was left out: #{Reason.fault(error)}")
          nil
        end
      end
    end
  end
end
