# frozen_string_literal: true

require_relative "../forks"
require_relative "../own_thread"
require_relative "../reason"

module Headway
  module Metrics
    # Hands what {Metrics.collect} says to a block every so often, on a thread of its own; in forked children and daemons too.
    class Reporter
      EVERY_S = 5
      # An end waits for a last report no longer: its receiver may not answer.
      LAST_S = 2
      # Nor does a fork for one that is under way.
      FORK_S = 0.5
      private_constant :EVERY_S, :LAST_S, :FORK_S

      @all = []

      class << self
        # @api private
        # @return [void]
        def start_afresh
          @all.each(&:run)
        end

        # No report is under way when a process forks: what a receiver has written into a file and not yet flushed, a child would write
        # again as it ends, at whatever place its parent has come to. That spoils prometheus-client's files for good.
        # @api private
        # @return what the block returns
        def at_rest(&fork)
          deadline = now + FORK_S
          paused = []
          @all.each { |reporter| reporter.pause(paused, deadline) }
          fork.call
        ensure
          Thread.handle_interrupt(Object => :never) { paused&.each(&:go_on) } # all of them, whatever strikes
        end

        # Whoever is told by two of them counts everything twice.
        #
        # @param receiver [Object] who is told
        # @yieldreturn [Reporter]
        # @return [Reporter] the one at work for that receiver, or else the block's, started
        def for(receiver)
          @all.find { |reporter| reporter.receiver == receiver } || yield.tap { |reporter| reporter.receiver = receiver }.start
        end

        # @param reporter [Reporter]
        # @return [void]
        def add(reporter)
          Forks.watch(self, daemons: true)
          @all |= [reporter]
          @at_exit ||= at_exit { report_last(ended: true) } # in forked children, too
        end

        # What came since the last report, as the process or Headway ends: each on a thread of its own, as one that isn't taken would
        # keep back the others.
        # @api private
        # @param last [Array<Reporter>]
        # @param ended [Boolean] whether it is the process that ends
        # @return [void]
        def report_last(last = @all.select(&:last?), ended: false)
          deadline = now + LAST_S
          threads = last.map { |reporter| OwnThread.start { reporter.attempt(ended: ended) } }
          threads.each { |thread| thread.report_on_exception = false }
          threads.each { |thread| thread.join([deadline - now, 0].max) }
        ensure
          threads&.each(&:kill)
        end

        # @param reporter [Reporter]
        # @return [void]
        def remove(reporter)
          @all -= [reporter]
        end

        # @api private
        def now
          ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
        end
      end

      # @param every [Numeric] seconds
      # @param to [String] who gets it, for notices
      # @param last [Boolean] whether what came since matters as the process ends
      # @yieldparam families [Array<Family>]
      # @raise [SettingError]
      def initialize(to:, every: EVERY_S, last: true, &report)
        raise SettingError, "every is #{every.inspect}: give seconds above 0" unless every.is_a?(Numeric) && every.positive?

        @every = every
        @to = to
        @last = last
        @report = report
        @lock = Mutex.new
      end

      # @api private
      attr_accessor :receiver

      # @return [Reporter] itself
      def start
        Reporter.add(self)
        run
        self
      end

      # Reports a last time, for two seconds at most, and no more. A report that is under way gets as long before, as its figures count
      # as told.
      # @return [void]
      def stop
        Reporter.remove(self)
        thread, @thread = @thread, nil
        return unless thread

        OwnThread.start { @lock.synchronize { thread.kill } }.join(LAST_S) || thread.kill
        thread.join
        Reporter.report_last([self])
      end

      # Now. Never two at a time, so that none hands over older figures than the one before.
      #
      # @param ended [Boolean] whether the process ends
      # @return [Array<Family>, nil] what was reported; nil: it didn't get there
      def report(ended: false)
        @lock.synchronize { Metrics.collect.map { |family| ended ? family.ended : family }.tap { |families| @report.call(families) } }
      rescue StandardError, ScriptError => error # a method that isn't implemented, a file that isn't there
        fail_with(error)
      end

      # The same on a thread of ours: whatever else a receiver raises, a stack too deep for one, would end all later reports with the
      # thread, and reach who waits for it.
      # @api private
      # @return (see #report)
      def attempt(ended: false)
        report(ended: ended)
      rescue SystemExit, SignalException # is for the process
        raise
      rescue Exception => error # rubocop:disable Lint/RescueException
        fail_with(error)
      end

      # Begins no report until it may {go_on}, unless one takes too long, or it is that which forks.
      # @api private
      # @param paused [Array<Reporter>] it is added to, whatever strikes meanwhile
      # @param deadline [Numeric]
      # @return [void]
      def pause(paused, deadline)
        until @lock.owned? || Thread.handle_interrupt(Object => :never) { @lock.try_lock && paused << self } || Reporter.now > deadline
          sleep 0.001
        end
      end

      # @api private
      # @return [void]
      def go_on
        @lock.unlock
      end

      # @api private
      # @return [Boolean]
      def last?
        @last
      end

      # @return [void]
      def run
        return if @thread&.alive?

        @thread = OwnThread.start { loop { sleep(@every) && attempt } }
        @thread.name = "headway metrics"
        @thread.thread_variable_set(:fork_safe, true) # spares a preloading Puma its warning: a child starts its own
        @thread.report_on_exception = false
      end

      private

      def fail_with(error)
        Notices.add("metrics don't reach #{@to}: #{Reason.of(error)}")
        nil
      end
    end
  end
end
