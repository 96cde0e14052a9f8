# frozen_string_literal: true

module Headway
  # Reasons why something is off. Each is kept, and said on stderr once.
  module Notices
    @all = []

    class << self
      # @return [Array<String>]
      def all
        lost = Native.signal_lost? if defined?(Native)
        lost ? @all + ["SIGURG is used by this program: preemption polls instead of signalling"] : @all.dup
      end

      # @param text [String]
      # @return [void]
      def add(text)
        return if @all.include?(text)

        @all << text
        warn("headway: #{text}")
      end
    end
  end
end
