# frozen_string_literal: true

require "harness/isolated_test"
require "harness/modes"
require "harness/vm_events"
require "harness/workload"
require "headway"

module Harness
  # A test of one row of the trap table (docs/architecture.md): every test in a
  # process of its own, under the modes it applies to.
  class TrapTest < IsolatedTest
    include Workload
    extend Modes

    def setup
      skip Headway.unsupported_reason unless Headway.supported?
    end

    # Runs the block with Headway on.
    def with_headway(mode = :fair_signal, **options)
      assert Headway.start(**Modes::ALL.fetch(mode).merge(options)), "Headway did not start: #{Headway.notices.join("; ")}"
      yield
    ensure
      Headway.stop
    end
  end
end
