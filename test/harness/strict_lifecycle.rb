# frozen_string_literal: true

require "harness/time_limit"

module Harness
  # What every test gets around it, whichever class it is in.
  module StrictLifecycle
    TIME_LIMIT = 60 # seconds

    # Seconds this test may take; a class may override it.
    def time_limit = TIME_LIMIT

    def run
      TimeLimit.new(time_limit, "#{self.class}##{name}").enforce { super }
    end

    def before_setup
      super
      @threads_before = Thread.list
    end

    def after_teardown
      Headway.stop if defined?(Headway) && Headway.respond_to?(:stop)
      reap_threads
      super
    end

    private

    # A thread that was joined may stay listed for the moment it takes to unwind. Looks are counted, not seconds: a machine that
    # stops gives nobody the time for it.
    def reap_threads
      leftover = threads_since_setup
      200.times do
        break if leftover.empty?

        sleep 0.005
        leftover = threads_since_setup
      end
      return if leftover.empty?

      seen = leftover.map { |thread| "#{thread.inspect} at #{thread.backtrace&.first}" }
      leftover.each(&:kill).each { |thread| thread.join(1) }
      flunk "threads left behind: #{seen.join(", ")}"
    end

    # Timeout keeps one thread of its own for the whole process.
    def threads_since_setup
      (Thread.list - @threads_before).reject { |thread| thread[:harness] || thread.name == "Timeout stdlib thread" }
    end
  end
end
