# frozen_string_literal: true

require_relative "file_name"

module Headway
  module Recorder
    # What a recording is started with.
    Options = Struct.new(:file, :events, :seconds, :mode, :wait_threshold, :on_signal, keyword_init: true) do
      def flight?
        mode == :flight
      end
    end

    class Options
      EVENTS = 1_000_000
      EVENTS_RANGE = (1..100_000_000).freeze
      MODES = [:stream, :flight].freeze
      WAIT_RANGE_S = (0.001..3600).freeze
      SECONDS_RANGE = (0.001..86_400).freeze
      private_constant :EVENTS_RANGE, :MODES, :WAIT_RANGE_S, :SECONDS_RANGE

      class << self
        # @return [Options] frozen, with the file's absolute path
        # @raise [SettingError]
        def check(file: nil, events: EVENTS, seconds: nil, mode: nil, wait_threshold: nil, on_signal: nil)
          mode = mode.nil? ? (file.nil? ? :flight : :stream) : mode.to_s.to_sym
          check_mode(mode, file, [wait_threshold, on_signal, seconds].any? { |value| !value.nil? })
          check_number("events", events, Integer, EVENTS_RANGE)
          check_number("wait_threshold", wait_threshold, Numeric, WAIT_RANGE_S) unless wait_threshold.nil?
          check_number("seconds", seconds, Numeric, SECONDS_RANGE) unless seconds.nil?
          new(file: (FileName.resolve(file) unless file.nil?), events: events, seconds: seconds, mode: mode, wait_threshold: wait_threshold,
              on_signal: (signal(on_signal) unless on_signal.nil?)).freeze
        end

        private

        def check_mode(mode, file, dumps)
          raise SettingError, "mode is #{mode.inspect}: give stream or flight" unless MODES.include?(mode)
          return if mode == :flight
          raise SettingError, "mode is stream: give a file, too" if file.nil?
          raise SettingError, "seconds, wait_threshold and on_signal are for mode flight: a stream writes everything anyway" if dumps
        end

        def check_number(name, value, type, range)
          return if value.is_a?(type) && range.cover?(value)

          raise SettingError, "#{name} is #{value.inspect[0, 60]}: give #{range.begin} to #{range.end}"
        end

        def signal(name)
          short = name.to_s.delete_prefix("SIG")
          return short if Signal.list.key?(short)

          raise SettingError, "on_signal is #{name.inspect[0, 60]}: give the name of a signal, such as PROF"
        end
      end
    end
  end
end
