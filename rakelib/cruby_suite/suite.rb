# frozen_string_literal: true

require_relative "arm"
require_relative "comparison"
require_relative "source"

module CRubySuite
  # A set of CRuby's test files, run once without Headway and once under each of its policies.
  class Suite
    THREADS = %w[test/ruby/test_thread*.rb test/monitor/*.rb test/test_timeout.rb].freeze
    FILES = {
      threads: THREADS,
      wide: [*THREADS, *%w[process signal io fiber gc_compact].map { |name| "test/ruby/test_#{name}.rb" },
             "test/fiber/test_*.rb", "test/socket/test_*.rb", "test/net/http/test_*.rb"]
    }.freeze

    ARMS = {
      fair_signal: { "HEADWAY_POLICY" => "fair", "HEADWAY_PREEMPT" => "signal" },
      fair_poll: { "HEADWAY_POLICY" => "fair", "HEADWAY_PREEMPT" => "poll" },
      quantum_signal: { "HEADWAY_POLICY" => "quantum", "HEADWAY_PREEMPT" => "signal" },
      quantum_poll: { "HEADWAY_POLICY" => "quantum", "HEADWAY_PREEMPT" => "poll" },
      observe: { "HEADWAY_POLICY" => "observe" }
    }.freeze

    def initialize(set)
      @set = set
    end

    # @return [Boolean] whether Headway changes nothing but what is documented
    def run
      directory = Source.new.directory
      files = FILES.fetch(@set).flat_map { |pattern| Dir[pattern, base: directory].sort }
      comparison = Comparison.new(Arm.new(:stock, nil, directory), arms(directory), files)
      comparison.run
      puts comparison
      comparison.same?
    rescue Apt::Error => error
      abort "cruby_suite: #{error.message}"
    end

    private

    def arms(directory)
      chosen = ENV.fetch("ARMS", ARMS.keys.join(",")).split(",").map(&:to_sym)
      unknown = chosen - ARMS.keys
      abort "cruby_suite: no arm #{unknown.join(", ")}; there are #{ARMS.keys.join(", ")}" if unknown.any?

      ARMS.slice(*chosen).map { |name, environment| Arm.new(name, environment, directory) }
    end
  end
end
