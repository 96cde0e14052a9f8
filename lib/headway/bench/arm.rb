# frozen_string_literal: true

require_relative "../cli"
require_relative "../cli/child_environment"

module Headway
  module Bench
    # One configuration under which a program runs.
    #
    # @!attribute name [String]
    # @!attribute interpreter [Interpreter]
    # @!attribute variables [Hash] environment variables it sets
    # @!attribute priority [Integer] of the program's CPU threads
    # @!attribute apart [Boolean] whether each of these is a process of its own instead
    # @!attribute headway [Hash, nil] options of `headway run`, nil where Headway is not to be loaded
    Arm = Data.define(:name, :interpreter, :variables, :priority, :apart, :headway) do
      def initialize(name:, interpreter:, variables: {}, priority: 0, apart: false, headway: nil) = super

      # @return [String, nil] the policy that must be at work in it
      def policy = headway&.fetch(:policy)

      # @return [Arm] the same under the policy observe, which measures waits and changes nothing
      def observed = with(headway: { policy: "observe" })

      # @return [Hash] what {Child} is to set
      def environment = Arm.environment(variables:, headway:)

      # @return [String, nil] why it cannot run, nil when it can
      def trouble
        if variables.key?("RUBY_THREAD_TIMESLICE") && !interpreter.timeslice?
          "RUBY_THREAD_TIMESLICE needs Ruby 3.4, this is #{interpreter.version}"
        elsif apart && !Process.respond_to?(:fork)
          "it needs fork"
        elsif headway
          interpreter.headway_trouble
        end
      end
    end

    class Arm
      DEFAULTS = %w[stock timeslice10 priority-3 headway].freeze
      KINDS = {
        "stock" => {},
        "timeslice10" => { variables: { "RUBY_THREAD_TIMESLICE" => "10" } },
        "priority-3" => { priority: -3 },
        "headway" => { headway: { policy: "fair", preempt: "signal" } },
        "headway-poll" => { headway: { policy: "fair", preempt: "poll" } },
        "headway-unpulled" => { variables: { "HEADWAY_PULL" => "0" }, headway: { policy: "fair", preempt: "signal" } },
        "observe" => { headway: { policy: "observe" } }
      }.freeze

      # Variables that would turn one arm into another, or load a bundle and so take long to start.
      SETTINGS = /\A(?:HEADWAY(?:_.+)?|RUBY_THREAD_TIMESLICE|RUBY_THREAD_DEFAULT_QUANTUM_MS|BUNDLER_SETUP)\z/
      private_constant :SETTINGS

      class << self
        # @param name [String] one of the class's KINDS
        # @return [Arm]
        def build(name, interpreter)
          kind = self::KINDS.fetch(name) do
            raise UsageError, "there is no arm #{name.inspect}: give any of #{self::KINDS.keys.join(", ")}"
          end
          new(name:, interpreter:, **kind)
        end

        # @param names [Array<String>]
        # @return [Array<Arm>] each once
        def choose(names, interpreter) = names.uniq.map { build(_1, interpreter) }

        # @return [Arm] the plain program under another Ruby
        def foreign(interpreter) = new(name: interpreter.name, interpreter:)

        # @return [Hash] changes to our own environment after which nothing but the arm's own settings is at work
        def environment(variables: {}, headway: nil)
          cleared = ENV.keys.grep(SETTINGS).to_h { [_1, nil] }.merge("RUBYOPT" => ruby_options, "RUBYLIB" => ruby_library)
          chosen = headway ? CLI::ChildEnvironment.build(headway, env: cleared.compact) : {}
          cleared.merge(chosen, variables)
        end

        private

        # The user's own options stay, --yjit for one; what loads Bundler or Headway does not.
        def ruby_options
          kept = ENV["RUBYOPT"].to_s.split.reject { _1.match?(%r{bundler/setup|headway/autostart}) }
          kept.join(" ") unless kept.empty?
        end

        def ruby_library
          kept = ENV["RUBYLIB"].to_s.split(File::PATH_SEPARATOR).grep_v(/bundler/)
          kept.join(File::PATH_SEPARATOR) unless kept.empty?
        end
      end
    end
  end
end
