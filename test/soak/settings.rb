# frozen_string_literal: true

module Soak
  # What operators change while a server runs.
  module Settings
    # @return [Hash] for {Headway::Control::Client#set}
    def self.any(random)
      [{ policy: %w[fair fair fair quantum observe].sample(random:) }, { quantum_ms: random.rand(10..200) },
       { preempt: %w[signal poll].sample(random:) }].sample(random:)
    end
  end
end
