# frozen_string_literal: true

# Autostart loads this into old Rubies and JRuby, too: keep to syntax that Ruby 2.0 parses.
module Headway
  # A setting has a value that means nothing. The message names the setting, its value and what would be right.
  class SettingError < ArgumentError; end

  # What a scheduler is started with, and the rules for reading it from code, from flags and from the environment.
  Settings = Struct.new(:policy, :quantum_ms, :preempt)

  class Settings
    POLICIES = [:fair, :quantum, :observe].freeze
    PREEMPTS = [:signal, :poll].freeze
    OFFLOADS = [:adaptive, :always, :never].freeze # in the order of the native part
    QUANTUM_RANGE_MS = (1..4_294_967).freeze

    DEFAULT_POLICY = :fair
    # Ruby's own slice, where RUBY_THREAD_TIMESLICE doesn't set another.
    VM_SLICE_MS = 100

    DEFAULT_PREEMPT = :signal
    # Batch threads of similar size do better run nearly to completion than in short slices.
    DEFAULT_QUANTUM_MS = VM_SLICE_MS

    # A decimal number and nothing else: Float() would also take "0x10", "1_000" and a newline.
    DECIMAL = /\A\d+(\.\d+)?([eE]\+?\d+)?\z/.freeze
    private_constant :DECIMAL

    class << self
      # @param value [Symbol, String]
      # @param from [String] the setting's name in the message of an error
      # @return [Symbol] one of {POLICIES}
      # @raise [SettingError]
      def policy(value, from: "policy")
        choice(value, POLICIES, from)
      end

      # @return [Symbol] one of {PREEMPTS}
      # @raise [SettingError]
      def preempt(value, from: "preempt")
        choice(value, PREEMPTS, from)
      end

      # @return [Symbol] one of {OFFLOADS}
      # @raise [SettingError]
      def offload(value, from: "mode")
        choice(value, OFFLOADS, from)
      end

      # @param value [Numeric, String] milliseconds
      # @return [Integer, Float]
      # @raise [SettingError]
      def quantum_ms(value, from: "quantum_ms")
        number = number(value)
        return number if number && QUANTUM_RANGE_MS.cover?(number)

        raise SettingError, "#{from} is #{quote(value)}: give milliseconds from #{QUANTUM_RANGE_MS.begin} to " \
                            "#{QUANTUM_RANGE_MS.end}, such as 10"
      end

      # @return [Boolean] whether the environment switches Headway off. Who writes something else than 0 and 1 there mostly wants that, and
      #   may be in a hurry.
      def disabled?(env = ENV)
        !["", "1"].include?(env["HEADWAY"].to_s)
      end

      # @return [String, nil] what to say of it when it isn't 0
      def odd_switch(env = ENV)
        "HEADWAY is #{quote(env["HEADWAY"])}, which is taken for 0: give 0 or 1" if disabled?(env) && env["HEADWAY"] != "0"
      end

      # @return [Boolean] whether threads may be woken on the processor of who wakes them: see ext/headway/core/pull.h
      # @raise [SettingError] when HEADWAY_PULL is neither 0 nor 1
      def pull?(env = ENV)
        switch(env, "HEADWAY_PULL")
      end

      # @param name [String] of a variable that switches something off
      # @return [Boolean] whether it is on
      # @raise [SettingError] when it is neither 0 nor 1
      def switch(env, name)
        value = env[name]
        return value != "0" if [nil, "", "0", "1"].include?(value)

        raise SettingError, "#{name} is #{value.scrub.inspect[0, 60]}: give 0 or 1"
      end

      # The settings in force: HEADWAY_POLICY and HEADWAY_PREEMPT override code, code overrides
      # RUBY_THREAD_DEFAULT_QUANTUM_MS. Every value is checked, those that are overridden too: a bad one is never
      # silently ignored.
      #
      # @return [Settings] frozen
      # @raise [SettingError]
      def resolve(policy: nil, quantum_ms: nil, preempt: nil, env: ENV)
        policies = [from_env(env, "HEADWAY_POLICY") { |value, name| policy(value, from: name) },
                    (policy(policy) unless policy.nil?)]
        preempts = [from_env(env, "HEADWAY_PREEMPT") { |value, name| preempt(value, from: name) },
                    (preempt(preempt) unless preempt.nil?)]
        quanta = [(quantum_ms(quantum_ms) unless quantum_ms.nil?),
                  from_env(env, "RUBY_THREAD_DEFAULT_QUANTUM_MS") { |value, name| quantum_ms(value, from: name) }]
        new(policies.compact.first || DEFAULT_POLICY,
            quanta.compact.first || DEFAULT_QUANTUM_MS,
            preempts.compact.first || DEFAULT_PREEMPT).freeze
      end

      private

      def from_env(env, name)
        value = env[name]
        yield value, name if value
      end

      def choice(value, choices, from)
        choices.find { |choice| choice.to_s == value.to_s } ||
          raise(SettingError, "#{from} is #{quote(value)}: give #{choices[0..-2].join(", ")} or #{choices.last}")
      end

      def number(value)
        case value
        when Integer, Float then value
        when Numeric then whole(value.to_f) if value.real?
        when String then whole(value.to_f) if value.ascii_only? && DECIMAL.match?(value)
        end
      end

      def whole(float)
        float.finite? && float == float.floor ? float.to_i : float
      end

      # As the user typed it, cut to a length that keeps the message on one line.
      def quote(value)
        text = value.is_a?(String) || value.is_a?(Symbol) ? value.to_s.scrub.inspect : value.inspect
        text.length > 60 ? "#{text[0, 57]}..." : text
      end
    end
  end
end
