# frozen_string_literal: true

require_relative "ledger"
require_relative "report"
require_relative "scenario"
require_relative "watchdog"
require_relative "ending"

module Stress
  # The child's side of one process.
  class Run
    attr_reader :plan, :ledger, :directory, :report, :scenarios

    def initialize(plan, directory)
      @plan = plan
      @directory = directory
      @ledger = Ledger.new
      @report = Report.new(File.join(directory, "report"))
      @pid = Process.pid
      @park_timeouts = 0
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def over? = now > @until || @failed

    # A forked child fails by its exit status; what it says here would be double.
    def fail(message)
      @failed = true
      report << [:failure, message]
    end

    def forked? = Process.pid != @pid

    def play
      @until = now + plan.seconds
      require "headway" if plan.settings
      start_headway unless plan.late_start
      @scenarios = plan.scenarios.map { |name| Scenario.load(name).new(name, self) }
      Watchdog.new(self).start
      drivers = @scenarios.map { |scenario| Thread.new { scenario.play } }
      start_headway if plan.late_start
      drivers.each(&:join)
      settle
      Ending.of(plan.ending).new(self).play
    end

    # Before Headway is stopped, its counters are gone after that.
    def note_park_timeouts
      @park_timeouts += Headway.stats[:process][:park_timeouts] if plan.settings && Headway.started?
    end

    private

    def start_headway
      return unless plan.settings

      Headway.start(**plan.settings) or fail("Headway did not start: #{Headway.notices.join("; ")}")
    end

    def settle
      note_park_timeouts
      report << [:ledger, ledger.issued.dup, ledger.accounted.dup] << [:park_timeouts, @park_timeouts]
    end
  end
end
