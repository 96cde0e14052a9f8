# frozen_string_literal: true

require "rbconfig"

module Headway
  module Bench
    # A Ruby to run programs with.
    class Interpreter
      PROBE = <<~RUBY
        require "json"
        yjit = defined?(RubyVM::YJIT) ? true : false
        puts JSON.generate(engine: RUBY_ENGINE, version: RUBY_ENGINE_VERSION, ruby: RUBY_VERSION, yjit: yjit)
      RUBY

      QUESTION = <<~RUBY
        require "json"
        started = defined?(Headway.started?) && Headway.started?
        puts JSON.generate(started: started, reason: Headway.unsupported_reason)
      RUBY
      private_constant :PROBE, :QUESTION

      # @return [Array<String>] the command that starts it
      attr_reader :command

      # @return [Interpreter] the Ruby that runs us
      def self.current = new(RbConfig.ruby)

      # @param path [String] an executable, by path or by name
      # @param flags [Array<String>] such as --yjit
      def initialize(path, flags: [])
        @command = [path, *flags]
      end

      # @return [Interpreter] the same with another flag
      def with(flag) = Interpreter.new(command.first, flags: [*command.drop(1), flag])

      def version = facts.fetch("ruby")
      def engine = facts.fetch("engine")
      def yjit? = facts.fetch("yjit")
      def cruby? = engine == "ruby"

      # @return [Boolean] reads RUBY_THREAD_TIMESLICE at start
      def timeslice? = cruby? && Gem::Version.new(version) >= Gem::Version.new("3.4")

      # @return [String] such as ruby-3.4.1 or jruby-10.0.0.0
      def name = ["#{engine}-#{facts.fetch("version")}", *command.drop(1).map { _1.delete_prefix("--") }].join("-")

      # @return [String, nil] why Headway does not run here, nil when it does
      def headway_trouble
        return @headway_trouble if defined?(@headway_trouble)

        answer = Child.run([*command, "-e", QUESTION], env: Arm.environment(headway: { policy: "observe" }))
        @headway_trouble = (answer["reason"] || "Headway did not start") unless answer["started"]
      rescue Error => e
        @headway_trouble = e.message
      end

      private

      def facts
        @facts ||= Child.run([*command, "-e", PROBE], env: Arm.environment)
      rescue Error => e
        raise UsageError, "#{command.first} is no Ruby that can be used: #{e.message}"
      end
    end
  end
end
