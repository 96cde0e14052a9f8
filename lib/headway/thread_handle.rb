# frozen_string_literal: true

module Headway
  # One thread, as Headway sees it: {Headway.thread}.
  class ThreadHandle
    # @param thread [Thread]
    def initialize(thread)
      raise ArgumentError, "#{thread.inspect} is no Thread" unless thread.is_a?(Thread)

      @thread = thread
    end

    # @return [Float, nil] the thread's own quantum in milliseconds; nil: the process's
    def quantum_ms
      quantum_ns = Native.thread_quantum_ns(@thread)
      quantum_ns.zero? ? nil : quantum_ns / 1_000_000.0
    end

    # @param value [Numeric, nil] milliseconds, 1 to 4,294,967; nil: the process's. Forgotten when the thread ends.
    # @raise [SettingError] a value that means nothing
    # @raise [Error] a thread that Headway does not schedule: dead, or not started before Headway
    def quantum_ms=(value)
      quantum_ns = value.nil? ? 0 : (Settings.quantum_ms(value) * 1_000_000).round
      return if Native.set_thread_quantum_ns(@thread, quantum_ns) || Settings.disabled?

      raise Error, "#{@thread.inspect} is not scheduled by Headway: start Headway first, and give a living thread"
    end

    # @return [Boolean] whether it counts as batch now
    def batch?
      Native.batch?(@thread)
    end

    # @return [Hash, nil] the thread's row of {Headway.stats}
    def stats
      Stats.of(@thread)
    end
  end
end
