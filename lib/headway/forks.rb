# frozen_string_literal: true

module Headway
  # Tells pools and fiber schedulers of a forked child that their threads and fibers stayed behind.
  module Forks
    @watched = ObjectSpace::WeakMap.new

    class << self
      # @param object [#start_afresh]
      def watch(object)
        @watched[object] = true
      end

      def after_fork_in_child
        @watched.keys.each(&:start_afresh)
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
  private_constant :Forks
end
