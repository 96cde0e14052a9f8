# frozen_string_literal: true

require "optparse"
require_relative "scenario"

module Stress
  # What was asked for on the command line.
  Options = Struct.new(:seconds, :processes, :seed, :policies, :preempts, :scenarios, :process_seconds, :stall, :keep, :quiet) do
    def self.parse(arguments)
      options = new(60, nil, Random.new_seed % 1_000_000, Stress::POLICIES, Stress::PREEMPTS, [], 3.0, 60, false, false)
      shown = false
      options.parser { shown = true }.parse!(arguments)
      raise self::Invalid, "unknown argument: #{arguments.first}" unless arguments.empty?

      shown ? nil : options
    rescue OptionParser::ParseError => error
      raise self::Invalid, error.message
    end

    def parser
      OptionParser.new do |parser|
        parser.banner = "Usage: bin/stress [options]"
        parser.on("--seconds S", Float, "start no process after this long (#{seconds})") { |value| self.seconds = value }
        parser.on("--processes N", Integer, "start so many processes, however long it takes") { |value| self.processes = value }
        parser.on("--seed N", Integer, "of the first process; each next one has one more (random)") { |value| self.seed = value }
        parser.on("--policy P", Stress::POLICY_CHOICES.keys, "#{Stress::POLICY_CHOICES.keys.join("|")} (all)") do |value|
          self.policies = Stress::POLICY_CHOICES.fetch(value)
        end
        parser.on("--preempt M", Stress::PREEMPT_CHOICES.keys, "#{Stress::PREEMPT_CHOICES.keys.join("|")} (all)") do |value|
          self.preempts = Stress::PREEMPT_CHOICES.fetch(value)
        end
        parser.on("--scenario A,B", Array, "these in every process, not a choice of", Scenario.names.join(", ")) do |names|
          unknown = names - Scenario.names
          raise OptionParser::InvalidArgument, unknown.join(",") if unknown.any?

          self.scenarios = names
        end
        parser.on("--process-seconds S", Float, "load of each process (#{process_seconds})") { |value| self.process_seconds = value }
        parser.on("--stall S", Float, "without progress for so long is a failure (#{stall})") { |value| self.stall = value }
        parser.on("--keep", "leave a process that stalls or fails, and its files, for a debugger") { self.keep = true }
        parser.on("--quiet", "no line for each process") { self.quiet = true }
        parser.on("--help", "this") do
          puts parser
          yield
        end
      end
    end
  end

  class Options
    class Invalid < StandardError; end
  end

  POLICIES = %i[fair quantum observe].freeze
  PREEMPTS = %i[signal poll].freeze
  POLICY_CHOICES = { "none" => [], **POLICIES.to_h { |name| [name.to_s, [name]] }, "all" => POLICIES }.freeze
  PREEMPT_CHOICES = { **PREEMPTS.to_h { |name| [name.to_s, [name]] }, "all" => PREEMPTS }.freeze
end
