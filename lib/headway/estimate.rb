# frozen_string_literal: true

require_relative "processors"
require_relative "base"
require_relative "reason"
require_relative "model/mva"
require_relative "statistics"

module Headway
  # How much of a workload's time needs no GVL, and so how many threads pay: measured by the wall clock, with one thread and with
  # several, and by the events of one thread alone.
  module Estimate
    # The workload can't be measured; the message says why.
    class Error < Headway::Error; end

    CONCURRENCY = [2, 4, 8, 16].freeze
    RUN_S = 0.25

    # The meter knows one thread, and what runs beside would be measured too.
    ONE_AT_A_TIME = Mutex.new
    private_constant :ONE_AT_A_TIME

    class << self
      # @param block [#call] the work
      # @param concurrency [Array<Integer>] numbers of threads to predict; the largest bounds those of the wall clock's method
      # @param measure [Boolean] whether to measure what is predicted
      # @param processes [Array<Integer>, nil] numbers of processes to fork and measure, with each number of threads
      # @param run_s [Float] length of each of the runs, of which there are some twenty
      # @return [Result]
      # @raise [ArgumentError] a value that means nothing
      # @raise [Error] when the work can't be measured; what the work raises is raised
      def call(block, concurrency: CONCURRENCY, measure: false, processes: nil, run_s: RUN_S)
        raise Error, "a yield fraction can't be measured here: #{Headway.unsupported_reason}" unless Headway.supported?
        raise ArgumentError, "no block given: what is to be measured?" unless block.respond_to?(:call)

        counts("concurrency", concurrency)
        counts("processes", processes) if processes
        seconds("run_s", run_s)
        alone { measure_all(block, concurrency, measure, processes, run_s) }
      end

      # @param error [Exception] from the work
      # @return [String] such as: raises RuntimeError: no luck (work.rb:3)
      def describe(error)
        place = error.backtrace_locations&.first
        "raises #{error.class}: #{Reason.line(error)}#{" (#{place.path}:#{place.lineno})" if place}"
      end

      private

      def alone
        raise Error, "another yield fraction is being measured in this process" unless ONE_AT_A_TIME.try_lock

        begin
          yield
        ensure
          ONE_AT_A_TIME.unlock
        end
      end

      def measure_all(block, concurrency, measure, processes, run_s)
        cores = Processors.count
        measurement = Measurement.new(Work.new(block), concurrency, measure: measure, cores: cores, run_s: run_s)
        rounds = measurement.call
        cells = Processes.new(block, measurement.call_s, run_s).call(processes, [1, *concurrency].uniq) if processes
        Result.new(rounds, concurrency: concurrency, measure: measure, cells: cells, cores: cores)
      end

      def counts(name, numbers)
        return if numbers.is_a?(Array) && numbers.any? && numbers.all? { _1.is_a?(Integer) && _1.between?(1, 1000) }

        raise ArgumentError, "#{name} is #{numbers.inspect[0, 60]}: give whole numbers from 1 to 1000, such as [2, 4]"
      end

      def seconds(name, number)
        return if number.is_a?(Numeric) && number.real? && number.finite? && number.positive?

        raise ArgumentError, "#{name} is #{number.inspect[0, 60]}: give seconds above 0"
      end
    end
  end
end

require_relative "estimate/fork_guard"
require_relative "estimate/work"
require_relative "estimate/sample"
require_relative "estimate/measurement"
require_relative "estimate/processes"
require_relative "estimate/wall_clock"
require_relative "estimate/result"
