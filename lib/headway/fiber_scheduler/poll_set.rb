# frozen_string_literal: true

module Headway
  class FiberScheduler
    # What IO.select asks for, as one IO that is readable when something of it may be ready.
    class PollSet < IO
      POSSIBLE = Headway.supported? && Native.respond_to?(:poll_set)
      private_constant :POSSIBLE

      class << self
        # @return what the block returns
        def open(*lists)
          set = for_fd(Native.poll_set(wanted(lists)), "r")
          set.asks(lists)
          yield set
        ensure
          set&.close
        end

        # @return [Boolean] whether the system has such a thing
        def possible? = POSSIBLE

        # @return [Hash{Integer => Integer}] events by descriptor
        def wanted(lists)
          events = Hash.new(0)
          lists.zip([IO::READABLE, IO::WRITABLE, IO::PRIORITY]) { |ios, event| ios&.each { |io| events[descriptor(IO.try_convert(io), event)] |= event } }
          events
        end

        private

        def descriptor(io, event) = event == IO::WRITABLE ? Native.poll_descriptor_to_write(io) : io.fileno
      end

      # @param lists [Array<Array<IO>, nil>] as IO.select takes them
      def asks(lists)
        @lists = lists
      end

      # Drains before it looks: what comes in between is found now, and what comes after that is told of again. The other way round the
      # draining took out what had come since the look, and nobody told of it any more. Once something is found the set is done with.
      # For the same reason a no of IO.select's is not believed, but where there is nothing. (Lists are as they are now: another fiber
      # may take something out.)
      #
      # @return [Array<Array<IO>>, nil]
      def ready
        Native.poll_drain(fileno)
        loop do
          ready = Elsewhere.select(*@lists, 0)
          return ready if ready || !Native.poll_ready?(self.class.wanted(@lists))
        end
      end
    end
    private_constant :PollSet
  end
end
