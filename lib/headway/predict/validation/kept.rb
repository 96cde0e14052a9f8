# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "../../draft"
require_relative "../../reason"
require_relative "../../settings"

module Headway
  module Predict
    class Validation
      # What a validation has done so far, in its directory: one that was broken off goes on from there.
      class Kept
        # @param directory [String]
        # @param plan [Hash] what it is to do, of strings and numbers
        # @raise [SettingError] the directory has one that does something else, or can't be used
        def initialize(directory, plan)
          FileUtils.mkdir_p(directory)
          @predictions, @measured, begun = %w[predictions.json measured.jsonl plan.json].map { |name| File.join(directory, name) }
          text = JSON.pretty_generate(plan)
          write(begun, text) unless File.exist?(begun)
          File.read(begun) == text or
            raise SettingError, "#{directory} has a validation of other settings, or of another Ruby: give its options, or another directory"

          @figures = measured
        rescue SystemCallError => error
          raise SettingError, "#{directory} can't be used: #{Reason.of(error)}"
        end

        # @return [String, nil] the predictions as they were written down
        def predictions = (File.read(@predictions) if File.exist?(@predictions))

        # @param text [String]
        # @return [String]
        def predictions=(text)
          write(@predictions, text)
        end

        # @param run [String] which one
        # @return [Boolean] whether it was measured
        def include?(run) = @figures.key?(run)

        # @return [Hash] the run's figures: those kept, or else the block's, which are kept from now on
        def fetch(run)
          @figures[run] ||= yield.tap { |figures| File.write(@measured, "\n#{JSON.generate([run, figures])}", mode: "a") }
        end

        private

        def measured
          return {} unless File.exist?(@measured)

          File.readlines(@measured, chomp: true).to_h { |line| line.empty? ? [nil, nil] : JSON.parse(line) }.compact
        rescue JSON::ParserError # the end of one that was broken off
          File.write(@measured, File.read(@measured).lines[..-2].join.chomp)
          retry
        end

        def write(path, text)
          Draft.write(path) { |draft| File.write(draft, text, mode: Draft::NEW) }
        end
      end
    end
  end
end
