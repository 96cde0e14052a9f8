# frozen_string_literal: true

require_relative "../predict"

module Headway
  module Predict
    # Settings to predict: all combinations of what was asked for; what wasn't is as recorded.
    class Grid
      WIDEST = 500

      # Of no text split makes no word: that would ask for no setting at all, or for the rate nil, which stands for closed.
      #
      # @param text [String] words with commas between them
      # @return [Array<String>] one at least
      def self.words(text) = text.empty? ? [text] : text.split(",", -1)

      # @param text [String] such as "1,2,4"
      # @param option [String] its name, for messages
      # @param highest [Integer]
      # @return [Array<Integer>]
      # @raise [SettingError]
      def self.counts(text, option, highest)
        words(text).map do |word|
          whole(word, highest) ||
            raise(SettingError, "#{option} is #{word.scrub.inspect}: give whole numbers from 1 to #{highest}, such as 1,2,4")
        end.uniq
      end

      # @return [Integer]
      # @raise [SettingError]
      def self.count(text, option, highest)
        whole(text, highest) ||
          raise(SettingError, "#{option} is #{text.scrub.inspect[0, 60]}: give a whole number from 1 to #{highest}")
      end

      def self.whole(text, highest)
        number = text[/\A\s*(\d{1,6})\s*\z/, 1].to_i
        number if number.between?(1, highest)
      end
      private_class_method :whole

      # @return [Array<Numeric>] milliseconds
      # @raise [SettingError]
      def self.quanta(text) = words(text).map { |word| Settings.quantum_ms(word.strip, from: "--quantum") }.uniq

      # @return [Array<Symbol>]
      # @raise [SettingError]
      def self.policies(text)
        words(text).map do |word|
          Workload::POLICIES.keys.find { |policy| policy.to_s == word.strip } ||
            raise(SettingError, "--policy is #{word.scrub.inspect}: give stock, quantum or fair")
        end.uniq
      end

      # @return [Array<Float, nil>] nil: closed
      # @raise [SettingError]
      def self.rates(text)
        words(text).map do |word|
          next nil if word.strip == "closed"

          rate = Float(word, exception: false)
          next rate if rate&.between?(0.001, 1_000_000)

          raise SettingError, "--rate is #{word.scrub.inspect}: give requests a second, such as 50, or closed"
        end.uniq
      end

      # @param workload [Workload]
      # @param asked [Hash] lists by :processes, :threads, :policy, :quantum_ms, :rate
      def initialize(workload, asked)
        recorded = Predict.recorded(workload).to_h
        @lists = recorded.to_h { |key, value| [key, asked.fetch(key, [value])] }
      end

      # @return [Array<Setting>]
      # @raise [SettingError] too many
      def settings
        count = @lists.values.map(&:size).inject(:*)
        raise SettingError, "#{count} settings are asked for: #{WIDEST} at most at a time" if count > WIDEST

        first, *rest = @lists.values_at(:rate, :policy, :quantum_ms, :processes, :threads)
        first.product(*rest).map { |rate, policy, quantum_ms, processes, threads| Setting.new(processes:, threads:, policy:, quantum_ms:, rate:) }
      end
    end
  end
end
