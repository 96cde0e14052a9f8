# frozen_string_literal: true

require_relative "process_argument"
require_relative "../recorder/file_name"
require_relative "../summary"

module Headway
  module CLI
    # `headway ctl PID record`: a recording in a running process, started and stopped from outside.
    module Recording
      NUMBERS = { "--events" => :events, "--seconds" => :seconds, "--wait-threshold" => :wait_threshold }.freeze
      private_constant :NUMBERS

      class << self
        # @param words [Array<String>] what follows the word record
        # @return [Integer] the exit status
        # @raise [UsageError]
        def call(pid, words, json: false)
          action, *words = words
          case action
          when "start" then print(start(pid, words), json: json)
          when "stop" then print(stop(pid, words), json: json)
          else raise UsageError, "#{action ? "#{action.scrub.inspect} is nothing that record does" : "record what"}: give start or stop"
          end
        end

        # @param recorder [Hash, nil] as {Control::Client#recorder} returns it
        # @return [Integer] the exit status
        def print(recorder, json: false)
          json ? CLI.print_json(recorder: recorder) : puts(recorder ? lines(recorder) : "nothing is recorded")
          0
        end

        private

        def start(pid, words)
          options = {}
          while (word = words.shift)
            take(word, words, options)
          end
          ProcessArgument.ask(pid) { |client| client.record(options) }
        end

        def take(word, words, options)
          name, value = word.scrub.split("=", 2)
          if name == "--mode" || NUMBERS.key?(name)
            value ||= words.shift&.scrub or raise UsageError, "#{name} needs a value (headway ctl --help says which)"
            return options[:mode] = value if name == "--mode"

            return options[NUMBERS[name]] = number(name, value)
          end
          raise UsageError, "unknown option #{name} (headway ctl --help lists them)" if name.to_s.start_with?("--")
          raise UsageError, "#{word.scrub.inspect} is not expected here: record start takes one FILE" if options[:file]

          options[:file] = Recorder::FileName.absolute(word)
        end

        def stop(pid, words)
          raise UsageError, "#{words.first.scrub.inspect} is not expected here: record stop takes nothing more" if words.any?

          ProcessArgument.ask(pid, &:stop_recording)
        end

        # What it may be is the process's to say.
        def number(name, text)
          return text.include?(".") ? Float(text) : Integer(text, 10) if text.match?(/\A\d{1,12}(\.\d{1,9})?\z/)

          raise UsageError, "#{name} is #{text.inspect[0, 60]}: give a number"
        end

        def lines(recorder)
          file, failure = recorder.values_at(:file, :failure).map { |text| text && Summary::Text.plain(text) }
          ["mode     #{recorder[:mode]}", "file     #{file || "none"}",
           "events   #{recorder[:events]}", "dropped  #{recorder[:dropped]}", "bytes    #{recorder[:bytes]}",
           *("failed   #{failure}" if failure)]
        end
      end
    end
  end
end
