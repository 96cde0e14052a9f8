# frozen_string_literal: true

module Headway
  module Metrics
    # What the native part knows of all threads of this process, as families.
    module Gvl
      class << self
        # All of it begins anew with each start, and with a fork, and so with Process.daemon, beyond which what Ruby counts goes on.
        #
        # @return [Array<Family>] where Headway can do nothing just that it does
        def families
          return [info] unless defined?(Native)

          figures = Native.metrics(BOUNDS_NS)
          [
            histogram("ruby_gvl_wait_seconds", "Times from wanting the GVL to getting it.", figures[:wait]),
            histogram("ruby_gvl_hold_seconds", "Times from getting the GVL to giving it up.", figures[:hold]),
            Family.new("ruby_gvl_preemptions_total", :counter, "Holds of the GVL that were ended for another thread.",
                       { {} => figures[:preemptions] }, began),
            Family.new("ruby_gvl_threads", :gauge, "Living threads by state.",
                       figures[:threads].to_h { |state, count| [{ state: state.to_s }, count] }),
            info
          ]
        end

        private

        def info
          Family.new("headway_info", :gauge, "1 where Headway is at work, with how it is set.", { settings => started })
        end

        def began
          [::Process.pid, Headway.starts]
        end

        def histogram(name, help, figures)
          Family.new(name, :histogram, help, { {} => Distribution.new(BOUNDS, *figures) }, began)
        end

        def settings
          { version: VERSION, policy: Headway.policy.to_s, preempt: Headway.preempt.to_s, quantum_ms: Headway.quantum_ms.to_s }
        end

        def started
          Headway.started? ? 1 : 0
        end
      end
    end
  end
end
