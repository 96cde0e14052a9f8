# frozen_string_literal: true

module Harness
  # Ends the process with every thread's backtrace when a block takes too long:
  # a thread that cannot be woken would outlive any gentler measure.
  class TimeLimit
    STATUS = 86 # of a process that ran into its limit

    def self.seconds_scale = Float(ENV.fetch("HEADWAY_TEST_TIME_SCALE", "1"))

    def initialize(seconds, what)
      @seconds = seconds * self.class.seconds_scale
      @what = what
      @done = Thread::Queue.new
    end

    def enforce
      watcher = Thread.new { expire unless @done.pop(timeout: @seconds) }
      watcher.name = "time limit"
      watcher.priority = 3
      watcher[:harness] = true
      Thread.pass until watcher.stop? # else the test starts with somebody waiting for the GVL
      yield
    ensure
      @done << true
      watcher&.join
    end

    def self.print_backtraces(out = $stderr)
      Thread.list.each do |thread|
        out.puts "#{thread.inspect}#{" (main)" if thread == Thread.main}"
        (thread.backtrace || ["no backtrace"]).each { |line| out.puts "    #{line}" }
      end
      out.flush
    end

    private

    def expire
      $stderr.puts "#{@what}: not done after #{@seconds} s; every thread's backtrace:"
      self.class.print_backtraces
      exit!(STATUS)
    end
  end
end
