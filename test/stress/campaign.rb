# frozen_string_literal: true

require_relative "ledger"
require_relative "plan"
require_relative "stressed_process"

module Stress
  # Process after process, until the time is up; then one line that says what became of all they did.
  class Campaign
    def initialize(options, out: $stdout)
      @options = options
      @out = out
      @ledger = Ledger.new
      @processes = @failures = @park_timeouts = 0
    end

    # @return [Boolean] whether nothing failed
    def run
      started = now
      seed = @options.seed
      loop do
        play(Plan.draw(seed, @options))
        seed += 1
        break if over?(now - started)
      end
      @out.puts summary(now - started)
      @failures.zero? && @ledger.open_items.empty? && @park_timeouts.zero?
    end

    private

    def over?(seconds) = @options.processes ? @processes >= @options.processes : seconds > @options.seconds

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def play(plan)
      started = now
      process = StressedProcess.new(plan, keep: @options.keep).run
      @processes += 1
      failures = process.failures + enter(process.rows || [])
      @failures += 1 if failures.any?
      tell(plan, failures, now - started)
    end

    def enter(rows)
      own = Ledger.new
      rows.each do |kind, *values|
        case kind
        when :ledger then own.add(*values)
        when :park_timeouts then @park_timeouts += values.first
        end
      end
      @ledger.add(own.issued, own.accounted)
      timed_out = rows.select { |kind, count| kind == :park_timeouts && count.positive? }
      own.open_items.map { |kind, (issued, accounted)| "#{kind}: #{issued} issued, #{accounted} accounted for" } +
        timed_out.map { |_, count| "#{count} parks timed out" }
    end

    def tell(plan, failures, seconds)
      return if failures.empty? && @options.quiet

      @out.puts format("%-6s %5.1f s  %s", failures.empty? ? "ok" : "FAILED", seconds, plan)
      unless failures.empty?
        @out.puts "    again: bin/stress --seconds 0 --seed #{plan.seed}, with the other options unchanged"
        failures.each { |failure| @out.puts failure.gsub(/^/, "    ") }
      end
      @out.flush
    end

    def summary(seconds)
      "ruby #{RUBY_VERSION}, #{seconds.round} s, #{@processes} processes from seed #{@options.seed}: #{@ledger}; " \
        "park_timeouts #{@park_timeouts}; failures #{@failures}"
    end
  end
end
