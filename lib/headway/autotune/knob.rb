# frozen_string_literal: true

require_relative "../settings"

module Headway
  class Autotune
    # Something that can be set while the program runs: an object with value, value= and range. If it has one, its backlog (what
    # waits in front of it) counts as well; its step(value, direction) says which value comes next, else that is a third more or a
    # quarter less, whole numbers staying whole.
    class Knob
      # @return [Symbol]
      attr_reader :name

      # @param name [Symbol]
      # @param actuator [#value, #value=, #range]
      # @raise [SettingError]
      def initialize(name, actuator)
        @name = name
        @actuator = actuator
        missing = %i[value value= range].reject { |method| actuator.respond_to?(method) }
        missing.empty? or raise SettingError, "knob #{name} has no #{missing.join(", ")}: give an object with value, value= and range"
        numbers?(actuator.range) or raise SettingError, "knob #{name} has the range #{actuator.range.inspect[0, 60]}: give one such as 1..16"
      end

      # @return [Numeric]
      def value = @actuator.value

      # @param value [Numeric]
      def value=(value)
        @actuator.value = value
      end

      # @return [Numeric, nil] how much waits in front of it
      def backlog = (@actuator.backlog if @actuator.respond_to?(:backlog))

      # @param value [Numeric]
      # @param direction [Integer] 1 up, -1 down
      # @return [Numeric, nil] the value one step on; nil: the range ends here
      def next_value(value, direction)
        target = @actuator.respond_to?(:step) ? @actuator.step(value, direction) : step(value, direction)
        target = target.clamp(@actuator.range.begin, @actuator.range.end)
        target if (target <=> value) == direction
      end

      private

      def step(value, direction)
        part = direction.positive? ? 3 : 4
        value + (direction * (value.is_a?(Integer) ? [value / part, 1].max : value.fdiv(part)))
      end

      def numbers?(range)
        range.is_a?(Range) && [range.begin, range.end].all? { |bound| bound.is_a?(Numeric) && bound.finite? } && range.begin <= range.end
      end
    end

    # The length of this process's time slices.
    class Quantum
      # @return [Range] milliseconds
      attr_reader :range

      # @param range [Range]
      def initialize(range)
        @range = range
      end

      def value = Headway.quantum_ms

      def value=(value)
        Headway.quantum_ms = value
      end

      # @return [Numeric] twice as long, or half
      def step(value, direction)
        target = direction.positive? ? value * 2 : value / 2.0
        target == target.floor ? target.to_i : target
      end
    end
  end
end
