# frozen_string_literal: true

module Headway
  # Reasons why something is off. Each is kept, and said on stderr once.
  module Notices
    # A receiver whose every failure has other words must not fill a memory.
    MOST = 100
    private_constant :MOST

    @all = []

    class << self
      # @return [Array<String>]
      def all
        @all | native
      end

      # @param text [String]
      # @return [void]
      def add(text)
        return if @all.include?(text) || @all.size >= MOST

        @all << text
        # Not by warn: where a program has its warnings raise, this would end the request or the job that is to be kept from a fault.
        $stderr.write("headway: #{text}\n") unless $VERBOSE.nil?
      rescue StandardError
        nil # stderr is gone; or the program's own, which may want a lock that a signal's handler can't take
      end

      private

      def native
        return [] unless defined?(Native)

        lost = "SIGURG is used by this program: preemption polls instead of signalling" if Native.signal_lost?
        [lost, Recorder.failure, Recorder.undumped].compact
      end
    end
  end
end
