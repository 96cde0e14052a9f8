# frozen_string_literal: true

require_relative "integrations/guard"

module Headway
  # Tells what has threads or fibers of its own that it is in a forked child, where they are not: pools, fiber schedulers, reporters
  # of metrics, autotune. What has none asks for a {number} when it is used: who wants to be told stands in the way of forks (see hook).
  module Forks
    # Ruby 4.0.0's WeakMap gives objects that are gone, which crashes who calls them (4.0.1's doesn't): there what is watched stays.
    @watched = RUBY_VERSION == "4.0.0" ? {}.compare_by_identity : ObjectSpace::WeakMap.new

    class << self
      # @param object [#start_afresh]
      # @param daemons [Boolean] tell it after Process.daemon, too, which takes along the fibers of the thread that called it
      def watch(object, daemons: false)
        @watched[object] = daemons
        hook
      end

      # @!method number
      #   @return [Integer] another one in each forked child, but not in what Process.daemon makes, which goes on with all there is
      if defined?(Native)
        def number
          Native.forks
        end
      else
        def number
          ::Process.pid
        end
      end

      # Another Ractor, which may not even look, waits for nobody; in the child it is the main one.
      #
      # @yieldreturn what a fork returns, made while nobody is in the middle of what a child must not have half of
      def at_rest(&fork)
        return yield if Ractor.current != Ractor.main

        resting = @watched.keys.select { |object| object.respond_to?(:at_rest) }
        resting.inject(fork) { |inner, object| -> { object.at_rest(&inner) } }.call
      end

      def after_fork_in_child
        @watched.keys.each { |object| start(object) }
      end

      def after_daemon
        Native.forget_fork if defined?(Native)
        @watched.keys.each { |object| start(object) if @watched[object] }
      end

      private

      # A signal that came while the parent forked may be left to the child, too. Ruby sees to it in the block given to fork, which what the
      # handler raises ends; where anybody's method stands before _fork, as that returns: what is raised goes on from the parent's fork. So
      # nothing stands there until somebody has to be told.
      def hook
        return if @hooked

        @hooked = true
        Process.singleton_class.prepend(ForkHook)
      end

      # The program's fork is not to fail because a thread of ours can't be made.
      def start(object)
        Integrations::Guard.guard("#{object.is_a?(Module) ? object : object.class} after a fork") { object.start_afresh }
      end
    end

    # What Ruby calls to fork; daemon does without it.
    module ForkHook
      def _fork
        pid = Forks.at_rest { super }
        Forks.after_fork_in_child if pid == 0
        pid
      end
    end

    module DaemonHook
      def daemon(*)
        Fiber.scheduler.then { |scheduler| scheduler.before_daemon if scheduler.respond_to?(:before_daemon) }
        super.tap { Forks.after_daemon }
      end
    end

    Process.singleton_class.prepend(DaemonHook)
  end
  private_constant :Forks
end
