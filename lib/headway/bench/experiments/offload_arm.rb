# frozen_string_literal: true

module Headway
  module Bench
    # One way to run blocking operations under a fiber scheduler.
    class OffloadArm < Arm
      # The gem each needs; those that need io-event run under Headway's fiber scheduler. Under _fair its scheduler of threads is on, too.
      KINDS = {
        "no_hook" => "io-event", "thread_per_op" => "io-event", "fixed_pool" => "io-event", "headway" => "io-event",
        "headway_fair" => "io-event", "async" => "async", "async_headway" => "async", "async_headway_fair" => "async"
      }.freeze
      DEFAULTS = KINDS.keys.freeze

      class << self
        # The program finds the gems that we find: Bundler does not reach it.
        def build(name, interpreter)
          gem = KINDS.fetch(name) { return super }
          new(name:, interpreter:, variables: { "GEM_PATH" => Gem.path.join(File::PATH_SEPARATOR), "HEADWAY_BENCH_GEM" => gem })
        end
      end

      # @return [String, nil]
      def trouble
        gem = variables["HEADWAY_BENCH_GEM"]
        return "it runs under the Ruby that runs the benchmark only" unless gem
        return "Ruby hands over blocking operations from 3.4 on, this is #{interpreter.version}" if hands_over? && !hands_over_here?

        "it needs the gem #{gem}" if Gem::Specification.find_all_by_name(gem).empty?
      end

      private

      def hands_over? = !%w[no_hook async].include?(name)

      def hands_over_here? = Gem::Version.new(interpreter.version) >= Gem::Version.new("3.4")
    end
  end
end
