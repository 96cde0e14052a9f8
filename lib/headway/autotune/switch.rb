# frozen_string_literal: true

module Headway
  # How tuning starts and stops. This much is there from the beginning, as nothing can be loaded in a signal handler that stops it. The
  # rest takes a third as long to load as all else of Headway, and comes with the first start.
  class Autotune
    class << self
      # @return [Autotune, nil] what tunes this process
      attr_reader :current

      # Starts tuning; what tuned before, stops.
      #
      # @param window [Numeric] seconds: 10
      # @param windows [Integer] windows compared with as many: 5
      # @param samples [Integer] works without which a window counts for nothing: 100
      # @param quantum_ms [Range, false] in which the quantum may move: 10..200; false: it is left alone
      # @param knobs [Hash{Symbol => #value, #value=, #range}] what else may move, see {Knob}
      # @param log [#call] gets each line, with the reasons; default: standard error
      # @return [Autotune, nil] nil: HEADWAY_AUTOTUNE is 0, or Headway isn't at work here, which {Headway.notices} says
      # @raise [SettingError] a value that means nothing
      # @raise [ThreadError] in a signal handler
      def start(**options)
        options = check(options)
        stop
        return if off?
        return unstarted unless Headway.started?

        Forks.watch(self, daemons: true)
        tuner = new(**options).run
        other, @current = @current, tuner # which another thread has started meanwhile
        other&.stop
        tuner
      end

      # @param options [Hash] for {start}
      # @return [Hash] those that were given
      # @raise [SettingError]
      def check(options)
        require_relative "../autotune"
        OPTIONS.check(options)
      end

      # Stops tuning, and leaves the setting that proved best. In a signal handler, too.
      #
      # @return [Boolean] whether anything tuned
      def stop
        tuner, @current = @current, nil
        tuner&.stop
        !tuner.nil?
      end

      # Goes on in a forked child or a daemon, from the setting that proved best, with windows of its own.
      # @api private
      # @return [void]
      def start_afresh
        @current&.go_on
      end

      # @return [Boolean] whether the environment forbids it
      # @raise [SettingError] when HEADWAY_AUTOTUNE is neither 0 nor 1
      def off?(env = ENV)
        !Settings.switch(env, "HEADWAY_AUTOTUNE")
      end

      private

      def unstarted
        return if Settings.disabled?

        Notices.add("autotune is off: Headway has not been started (in Rails it starts after the application's initializers)")
        nil
      end
    end
  end
end
