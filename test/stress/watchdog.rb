# frozen_string_literal: true

module Stress
  # The watchdog inside the process: it can say where each thread is. (The one outside, in StressedProcess, ends a process
  # in which not even this one runs.)
  class Watchdog
    STATUS = 86 # of a process that stalled

    def initialize(run)
      @run = run
    end

    def start
      Thread.new { watch }.tap do |thread|
        thread.name = "watchdog"
        thread.priority = 3
      end
    end

    def watch
      loop do
        sleep 0.5
        stalled = @run.scenarios.select { |scenario| playing?(scenario) && @run.now - scenario.beat_at > @run.plan.stall }
        bark(stalled) if stalled.any?
      end
    end

    private

    def playing?(scenario)
      Thread.list.any? { |thread| thread.name == scenario.name }
    end

    def bark(stalled)
      GC.stress = false
      @run.report << [:stall, "no progress for #{@run.plan.stall} s in #{stalled.map(&:name).join(", ")}\n#{backtraces}"]
      sleep # the parent decides what becomes of us
    end

    def backtraces
      Thread.list.map do |thread|
        ["#{thread.inspect}#{" with interrupts pending" if thread.pending_interrupt?}", *(thread.backtrace || ["no backtrace"]).map { |line| "    #{line}" }].join("\n")
      end.join("\n")
    end
  end
end
