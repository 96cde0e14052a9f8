# frozen_string_literal: true

module Headway
  # Starts the threads of our own that run beside the program's, so that a kill reaches them. A thread is born with the interrupt mask of
  # who creates it, which is whoever happens to start us, or to fork. Under one that holds everything back no kill would reach it, nor
  # the one at the process's end, which waits for it: not even TERM would end that process.
  module OwnThread
    # @return [Thread] that runs the block
    def self.start(&block)
      Thread.new { Thread.handle_interrupt(Object => :immediate, &block) }
    end
  end
  private_constant :OwnThread
end
