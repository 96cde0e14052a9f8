# frozen_string_literal: true

module Harness
  # Raises on a warning that names a file of the project; others pass through.
  class StrictWarnings < Module
    def initialize(root)
      super()
      # Gems may be installed below the checkout; their warnings are not ours to fix.
      ours = /^#{Regexp.escape(root)}\/(?:lib|exe|bin|test|bench|rakelib)\//
      # Ruby 4.0 says it once a process, at whatever line a scheduler's hook gets its first buffer.
      of_the_vm = /warning: IO::Buffer is experimental/
      define_method(:warn) do |message, **options|
        raise "warning: #{message}" if message.match?(ours) && !message.match?(of_the_vm)

        super(message, **options)
      end
    end
  end
end
