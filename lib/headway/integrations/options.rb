# frozen_string_literal: true

require_relative "../settings"
require_relative "../recorder/options"

module Headway
  module Integrations
    # Options as an integration is given them, in an application's configuration.
    class Options
      STARTS = %i[policy quantum_ms preempt].to_h do |name|
        [name, ->(_, value) { Settings.public_send(name, value) }]
      end.freeze
      private_constant :STARTS

      # @param where [String] what the options belong to, as a message names it
      # @param checks [Hash{Symbol => #call}] the options there are and their checks, each of which raises
      #   {SettingError} for a bad value
      # @param start [Boolean] whether those of {Headway.start} are among them
      def initialize(where, checks = {}, start: true)
        @where = where
        @checks = start ? STARTS.merge(checks) : checks
      end

      # @param options [Hash{Symbol => Object}]
      # @param at [Array<String>, nil] the place in the configuration an error is to name, instead of its backtrace
      # @return [Hash] the options that were given, nil ones left out
      # @raise [SettingError] an option that isn't there, or a value that means nothing
      def check(options, at: nil)
        checked(options)
      rescue SettingError => error
        at ? raise(SettingError, error.message, at, cause: nil) : raise
      end

      # @param options [Hash] as {#check} returned them
      # @return [Hash] those that {Headway.start} takes
      def self.start(options)
        options.slice(*STARTS.keys)
      end

      LONGEST_S = 31_536_000 # a year: Ruby can't sleep for as long as one likes
      private_constant :LONGEST_S

      # A check: a number of seconds above nothing.
      SECONDS = lambda do |name, value|
        value.is_a?(Numeric) && value.real? && value.positive? && value <= LONGEST_S or
          raise SettingError, "#{name} is #{value.inspect[0, 60]}: give seconds, such as 60"
      end

      # A check: true or false.
      SWITCH = lambda do |name, value|
        [true, false].include?(value) or raise SettingError, "#{name} is #{value.inspect[0, 60]}: give true or false"
      end

      # A check: a share of all.
      SHARE = lambda do |name, value|
        value.is_a?(Numeric) && (0..1).cover?(value) or
          raise SettingError, "#{name} is #{value.inspect[0, 60]}: give a number from 0 to 1, such as 0.1"
      end

      # A check: something to call.
      CALLABLE = lambda do |name, value|
        value.respond_to?(:call) or raise SettingError, "#{name} is #{value.inspect[0, 60]}: give a lambda"
      end

      # A check: what {Recorder.start} takes, as a Hash. Not left to that, which comes when the server starts.
      RECORDING = lambda do |name, value|
        known = Recorder::Options.members
        unknown = value.is_a?(Hash) ? value.keys - known : [value]
        unknown.empty? or raise SettingError, "#{name} has #{unknown.first.inspect[0, 60]}: give a Hash of #{known.join(", ")}"
        Recorder::Options.check(**value)
      end

      private

      def checked(options)
        unknown = options.keys.reject { |key| key.respond_to?(:to_sym) && names.include?(key.to_sym) }
        raise SettingError, "#{unknown.first} is no option of #{@where}: give #{list(names)}" if unknown.any?

        given = options.compact.transform_keys(&:to_sym)
        @checks.each { |name, check| given.key?(name) && check.call(name, given[name]) }
        given
      end

      def names
        @checks.keys
      end

      def list(names)
        "#{names[0..-2].join(", ")} or #{names.last}"
      end
    end
  end
end
