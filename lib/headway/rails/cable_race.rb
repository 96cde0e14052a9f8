# frozen_string_literal: true

require "monitor"

module Headway
  module Rails
    # In front of Action Cable's buffer of messages: closes a race. What a client sends as its connection gets ready (it is welcomed just
    # before) may be put there when what was there has just been taken, and nobody looks again: its subscription isn't confirmed. It takes a
    # switch of threads between two instructions, which stock Ruby makes on a busy machine, too, and Headway more often.
    module CableRace
      # The second from the Rails after 8.1 on.
      BUFFERS = %w[ActionCable::Connection::MessageBuffer ActionCable::Server::Socket::MessageBuffer].freeze
      private_constant :BUFFERS

      # Once connections are loaded.
      # @return [void]
      def self.close
        BUFFERS.filter_map(&:safe_constantize).each { |buffer| buffer.prepend(self) }
      end

      def initialize(*)
        super
        @headway_monitor = Monitor.new # of each connection; who receives a message may append one
      end

      # A message has come.
      def append(*)
        @headway_monitor.synchronize { super }
      end

      # The connection is ready.
      def process!
        @headway_monitor.synchronize { super }
      end
    end
  end
end
