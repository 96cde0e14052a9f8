# frozen_string_literal: true

module Headway
  class Rack
    # A body whose server tells of the end; unless its close raises, or is left otherwise: then this does.
    class Closing < ::Rack::BodyProxy
      NOTHING = ->() {}
      private_constant :NOTHING

      # @param body [#close]
      # @yieldparam error [Exception, nil]
      def initialize(body, &failed)
        super(body, &NOTHING)
        @failed = failed
      end

      def close
        super
        closed = true
      ensure
        @failed.call($!) unless closed
      end
    end
    private_constant :Closing
  end
end
