# frozen_string_literal: true

module Headway
  module Bench
    class Serving
      # A server whose garbage is collected before it gets its turn's load: all of it, the old, too (programs/heap.rb says why).
      class Swept
        SIGNAL = "WINCH"
        SETTLED_S = 0.3 # several times as long as it takes: with workers, nobody could tell when all are done
        private_constant :SETTLED_S

        # @param server [#sweep, #load]
        def initialize(server)
          @server = server
        end

        # @return [Hash] what the server's load returns
        def load(...)
          @server.sweep
          sleep SETTLED_S
          @server.load(...)
        end
      end
    end
  end
end
