# frozen_string_literal: true

module Harness
  # Headway's policies and preemptions, and tests that run once under each. A
  # short quantum makes the second policy preempt often, and the tests short.
  module Modes
    ALL = {
      fair_signal: { policy: :fair, preempt: :signal },
      fair_poll: { policy: :fair, preempt: :poll },
      quantum_signal: { policy: :quantum, preempt: :signal, quantum_ms: 2 },
      quantum_poll: { policy: :quantum, preempt: :poll, quantum_ms: 2 },
      observe: { policy: :observe }
    }.freeze

    FAIR = %i[fair_signal fair_poll].freeze
    PREEMPTING = %i[fair_signal fair_poll quantum_signal quantum_poll].freeze

    # Defines one test for each mode; Headway runs during the block, which gets the mode's name.
    def test_under(modes, description, **options, &body)
      modes.each do |mode|
        define_method("test_#{description.gsub(/\W+/, "_")}_under_#{mode}") do
          with_headway(mode, **options) { instance_exec(mode, &body) }
        end
      end
    end
  end
end
