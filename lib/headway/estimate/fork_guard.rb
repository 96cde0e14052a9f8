# frozen_string_literal: true

module Headway
  module Estimate
    # Work that forks is refused: its copies would go on measuring, each forking in turn.
    module ForkGuard
      GUARDED = :headway_estimate_work
      private_constant :GUARDED

      # Forbids the current thread to fork.
      def self.guard
        Thread.current.thread_variable_set(GUARDED, true)
      end

      def self.refuse
        return unless Thread.current.thread_variable_get(GUARDED)

        raise Error, "the work forks: measure what the child does instead, or start it with spawn or system"
      end

      def _fork
        ForkGuard.refuse
        super
      end

      def daemon(...)
        ForkGuard.refuse
        super
      end
    end
    private_constant :ForkGuard
    Process.singleton_class.prepend(ForkGuard)
  end
end
