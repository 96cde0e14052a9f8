# frozen_string_literal: true

module Headway
  # Stands for the tuner where there is nothing to tune.
  class Autotune
    class << self
      attr_reader :current

      def start(**)
        nil
      end

      def check(options)
        options
      end

      def stop
        false
      end

      def off?(_env = ENV)
        true
      end
    end
  end
end
