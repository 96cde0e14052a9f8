# frozen_string_literal: true

module Stress
  # How a process ends, beside threads that are still busy. What then must have happened, the parent judges.
  class Ending
    STATUS = 23 # asked for

    class << self
      def names = KINDS.keys
      def of(name) = KINDS.fetch(name)

      # Whether the process says goodbye: at_exit blocks, finalizers, ensure clauses of its threads.
      def clean?(_status = nil) = true
      def expected?(status) = status.exitstatus == STATUS
    end

    THREADS = 5

    def initialize(run)
      @run = run
    end

    def play
      start_load
      @run.report << [:ending]
      leave
    end

    private

    def start_load
      entered = Thread::Queue.new
      THREADS.times do |number|
        Thread.new do
          entered << number
          loop { number.odd? ? sleep(0.0005) : 1 + 1 }
        ensure
          @run.report << [:ensured, number] unless @run.forked?
        end.name = "load-#{number}"
      end
      THREADS.times { entered.pop }
      sleep 0.02
    end

    def leave = exit(STATUS)

    # The end of the main program, with threads that go on for ever.
    class Return < Ending
      def self.expected?(status) = status.exitstatus == 0
      def leave = nil
    end

    class ExitInThread < Ending
      def leave
        Thread.new { exit(STATUS) }
        sleep
      end
    end

    class ExitNow < Ending
      def self.clean?(_status = nil) = false
      def leave = exit!(STATUS)
    end

    class Signal < Ending
      def self.expected?(status) = status.termsig == ::Signal.list["TERM"]

      def leave
        Process.kill(:TERM, Process.pid)
        sleep
      end
    end

    class KillMain < Ending
      def self.expected?(status) = status.exitstatus == 0

      def leave
        Thread.new { Thread.main.kill }
        loop { 1 + 1 }
      end
    end

    class Exec < Ending
      def self.clean?(_status = nil) = false
      def leave = exec("/bin/sh", "-c", "exit #{STATUS}")
    end

    # A thread takes over: the main one only joins it when everything is over.
    class AtExitJoin < Ending
      def leave
        worker = Thread.new { 200_000.times { 1 + 1 } }
        at_exit { worker.join }
        exit(STATUS)
      end
    end

    KINDS = { "exit" => Ending, "return" => Return, "exit_in_thread" => ExitInThread, "exit_now" => ExitNow, "signal" => Signal,
              "kill_main" => KillMain, "exec" => Exec, "at_exit_join" => AtExitJoin }.freeze
  end
end
