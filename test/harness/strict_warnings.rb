# frozen_string_literal: true

module Harness
  # Raises on a warning that names a file of the project; others pass through.
  class StrictWarnings < Module
    def initialize(root)
      super()
      # Gems may be installed below the checkout; their warnings are not ours to fix.
      ours = /^#{Regexp.escape(root)}\/(?:lib|exe|bin|test|bench|rakelib)\//
      define_method(:warn) do |message, **options|
        raise "warning: #{message}" if message.match?(ours)

        super(message, **options)
      end
    end
  end
end
