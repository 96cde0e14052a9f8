# frozen_string_literal: true

module Headway
  module Control
    # What answers have in them, as far as it is read here: whoever has a socket of that name may answer anything.
    module Shape
      TEXT = ->(value) { value.nil? || value.is_a?(String) }
      FLAG = ->(value) { [true, false, nil].include?(value) }
      FIGURE = ->(value) { value.nil? || value.is_a?(Numeric) }
      SPREAD = { count: Integer, p50: FIGURE, p99: FIGURE, max: FIGURE }.freeze
      SETTINGS = { policy: String, quantum_ms: Numeric, preempt: String }.freeze
      TIMES = { running: Numeric, ready: Numeric, wait: SPREAD, hold: SPREAD }.freeze
      THREAD = { number: FIGURE, name: TEXT, state: TEXT, batch: FLAG, alive: FLAG, suspended: Numeric, **TIMES,
                 switches: { preempted: Integer } }.freeze
      BUCKET = { from_s: Numeric, to_s: Numeric, count: Integer }.freeze
      LINE = { weight: Numeric, method: TEXT, file: TEXT, line: FIGURE }.freeze
      RECORDING = { mode: String, file: TEXT, events: Integer, dropped: Integer, bytes: Integer, failure: TEXT }.freeze
      RECORDER = ->(value) { value.nil? || Shape.fits?(value, RECORDING) }
      STATS = { pid: Integer, headway: TEXT, ruby: String, command: TEXT, wall: Numeric, **SETTINGS,
                process: { threads: Integer, switches: { voluntary: Integer, preempted: Integer }, wait_histogram: [BUCKET], **TIMES },
                threads: [THREAD], threads_left_out: FIGURE, blame: { weight: Numeric, lines: [LINE] },
                recorder: RECORDER }.freeze
      ALL = { stats: STATS, settings: SETTINGS, ping: { command: TEXT }, dump: String, recorder: RECORDER }.freeze

      # @param value what JSON has
      # @param shape [Hash, Array, #===]
      # @return [Boolean]
      def self.fits?(value, shape)
        case shape
        when Hash then value.is_a?(Hash) && shape.all? { |name, part| fits?(value[name], part) }
        when Array then value.is_a?(Array) && value.all? { |each| fits?(each, shape.first) }
        else shape === value
        end
      end
    end
    private_constant :Shape
  end
end
