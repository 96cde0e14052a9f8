# frozen_string_literal: true

# The public face where Headway can do nothing: everything is there, start says once why.
module Headway
  NOTHING = { running: 0.0, ready: 0.0, suspended: 0.0,
              wait: { count: 0, p50: 0.0, p99: 0.0, max: 0.0 }, hold: { count: 0, p50: 0.0, p99: 0.0, max: 0.0 },
              switches: { voluntary: 0, preempted: 0 } }.freeze
  private_constant :NOTHING

  # Stands for {Headway.thread}.
  class ThreadHandle
    def initialize(thread)
      @thread = thread
    end

    attr_reader :quantum_ms, :stats

    def quantum_ms=(value)
      Settings.quantum_ms(value) unless value.nil?
    end

    def batch?
      false
    end
  end

  # Stands for the recorder.
  module Recorder
    class << self
      def start(**)
        false
      end
      alias stop start
      alias finish start
      alias recording? start

      def dump(_path = nil)
        raise Error, "nothing is recorded: Headway does nothing here: #{Headway.unsupported_reason}"
      end

      def stats
        { mode: nil, file: nil, events: 0, dropped: 0, bytes: 0, folded: 0, slots: 0 }
      end
    end
  end

  class << self
    def start(policy: nil, quantum_ms: nil, preempt: nil, record: nil)
      return false if Settings.disabled?

      Settings.resolve(policy: policy, quantum_ms: quantum_ms, preempt: preempt)
      return false if @said

      @said = true
      warn("headway: Headway does nothing here: #{unsupported_reason}")
      false
    end

    def stop
      false
    end
    alias started? stop
    alias pass stop

    def policy
      Settings::DEFAULT_POLICY
    end

    def policy=(value)
      Settings.policy(value)
    end

    def preempt
      Settings::DEFAULT_PREEMPT
    end

    def quantum_ms
      Settings::DEFAULT_QUANTUM_MS
    end

    def quantum_ms=(value)
      Settings.quantum_ms(value)
    end

    def thread(thread = Thread.current)
      ThreadHandle.new(thread)
    end

    def thread_account
      nil
    end

    def batch
      yield
    end
    alias interactive batch

    def offload(deadline: nil)
      raise ArgumentError, "no block to run" unless block_given?

      yield
    end

    def mark(_name)
      yield if block_given?
    end

    def yield_fraction(**)
      raise Error, "a yield fraction can't be measured here: #{unsupported_reason}"
    end

    def stats
      counters = { running_batch: 0.0, ready_batch: 0.0, preemptions: 0, parks: 0, park_timeouts: 0, pulls: 0, retries: 0, threads: 0 }
      { policy: policy, preempt: preempt, quantum_ms: quantum_ms, wall: 0.0, process: NOTHING.merge(counters), work: {},
        threads: [], blame: { samples: 0, weight: 0.0, late: 0.0, folded: 0, stacks: [] } }
    end

    def notices
      ["Headway does nothing here: #{unsupported_reason}"]
    end
  end
end
