# frozen_string_literal: true

module Headway
  class OffloadPool
    # Tells every pool of a forked child that its workers stayed behind.
    module Forks
      @pools = ObjectSpace::WeakMap.new

      class << self
        # @param pool [OffloadPool]
        def watch(pool)
          @pools[pool] = true
        end

        def after_fork_in_child
          @pools.keys.each(&:start_afresh)
        end
      end

      # What Ruby calls to fork.
      module Hook
        def _fork
          pid = super
          Forks.after_fork_in_child if pid == 0
          pid
        end
      end

      Process.singleton_class.prepend(Hook)
    end
  end
end
