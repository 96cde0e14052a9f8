# frozen_string_literal: true

require_relative "version"

module Headway
  # The benchmarks: programs that show what the scheduling of threads costs, run in fresh processes under several arms.
  #
  # Nothing here loads the native part: the process that measures must not be scheduled by what it measures.
  module Bench
    # A benchmark could not be run to its end; the message is for the user.
    class Error < StandardError; end

    # A program did not end in time.
    class Stuck < Error; end

    # What the user asked for makes no sense; the message says what would.
    class UsageError < Error; end

    PROGRAMS = File.join(__dir__, "bench", "programs")

    # @param name [String]
    # @return [String] the path of a benchmark's program
    def self.program(name) = File.join(PROGRAMS, "#{name}.rb")

    # Runs the block as what a program that measures is there for: see {CLI.guard}.
    #
    # @param name [String] of the program that says what was wrong
    # @return [Integer] the exit status
    def self.guard(name)
      CLI.guard(name) do
        yield
        0
      rescue UsageError => error
        raise CLI::UsageError, error.message
      rescue Error => error
        CLI.say(error.message, name)
        1
      end
    end
  end
end

require_relative "statistics"
require_relative "bench/progress"
require_relative "bench/child"
require_relative "bench/interpreter"
require_relative "bench/arm"
require_relative "bench/options"
require_relative "bench/server"
require_relative "bench/figure"
require_relative "bench/experiment"
require_relative "bench/stolen"
require_relative "bench/result"
require_relative "bench/runner"
require_relative "bench/table"
require_relative "bench/picture"
require_relative "bench/request"
