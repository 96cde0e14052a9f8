# frozen_string_literal: true

module Headway
  module Puma
    # The threads of a running Puma::Server, from Puma 8 on: what {Autotune} takes as a knob.
    class Threads
      # @return [Range]
      attr_reader :range

      # @param server [::Puma::Server]
      # @return [Boolean] whether this Puma lets its threads be set
      def self.settable?(server)
        server.respond_to?(:update_thread_pool_min_max)
      end

      # @param server [::Puma::Server]
      # @param range [Range, nil] default: up to what Puma was configured with, which pools of connections are made for
      def initialize(server, range)
        @server = server
        configured = server.headway_threads
        @range = range || (1..configured.end)
        @least = configured.begin
        server.update_thread_pool_min_max(min: @least, max: configured.end) # of a refork's server, which a knob may have set before
      end

      # @return [Integer] threads at most
      def value
        @server.max_threads
      end

      # @param value [Integer]
      def value=(value)
        @server.update_thread_pool_min_max(min: [@least, value].min, max: value)
        @server.headway_trim
      end

      # @return [Integer] requests that wait for a thread
      def backlog
        @server.backlog.to_i
      end
    end
  end
end
