# frozen_string_literal: true

require_relative "processors"
require_relative "control/directory"

module Headway
  # The control socket of this process, through which `headway top` and `headway ctl` look at it and change its settings.
  # The native extension does the work, on a thread Ruby doesn't know of (ext/headway/core/control.h says why); this module
  # says where the socket is to be. docs/control-protocol.md is what it speaks.
  module Control
    class << self
      # Opens the socket, unless HEADWAY_CONTROL is 0. Never raises for want of one: {Headway.notices} says what is wrong.
      #
      # @return [void]
      def open
        return if Native.control_path

        failure = open_native
        return Notices.add("no control socket, so headway top cannot see this process: #{failure}") if failure

        Recorder.stop_at_exit # a client may start a recording at any time
        Native.threads.each { |thread| Native.thread_name(thread) } # which makes them known to the socket, too
      end

      # Closes it again. What a client has asked for until then is done.
      #
      # @return [void]
      def close
        Native.control_close
      end

      # @return [Boolean] whether the environment switches the socket off
      # @raise [SettingError] when HEADWAY_CONTROL is neither 0 nor 1
      def off?(env = ENV)
        !Settings.switch(env, "HEADWAY_CONTROL")
      end

      # @return [String, nil] the socket's path while it is open
      def path
        Native.control_path
      end

      # Settings that a client has changed since this was last asked.
      #
      # @return [Settings, nil]
      def changes
        kind, preempt, quantum_ns = Native.control_changes
        return if kind.nil?

        quantum_ms = quantum_ns % 1_000_000 == 0 ? quantum_ns / 1_000_000 : quantum_ns / 1e6
        Settings.new(Native::POLICIES[kind], quantum_ms, Native::PREEMPTS[preempt]).freeze
      end

      private

      # @return [String, nil] why it can't be opened
      def open_native
        quota = Quota.find
        Native.control_open(Directory.for_server, VERSION, RUBY_VERSION, $PROGRAM_NAME.to_s, Processors.count(quota), quota&.path.to_s)
      rescue SettingError => error
        error.message
      end
    end
  end
end
