# frozen_string_literal: true

require_relative "labels"
require_relative "behind"

module Headway
  module Report
    # What a trace says, in one or two plain sentences.
    class Headline
      # Below this share of its time, or so little in all, a wait is not worth a word of complaint.
      SLIGHT = 0.01
      SLIGHT_S = 0.005
      # A thread that blocks for less than this share of the time it isn't kept waiting competes for the GVL.
      CPU_BOUND = 0.1
      # A thread that waited for less than this share of what the longest waiter did is no example of the trouble.
      MINOR = 0.1
      # A method or thread that had less than this share of a wait doesn't explain it.
      TELLING = 0.25
      # From this share of the time on, garbage collection is worth a sentence.
      MUCH_GC = 0.1
      IDLE = 0.02
      private_constant :SLIGHT, :SLIGHT_S, :CPU_BOUND, :MINOR, :TELLING, :MUCH_GC, :IDLE

      # @param data [Hash] as {Trace#to_h} returns it
      # @return [String]
      def self.of(data)
        new(data).to_s
      end

      def initialize(data)
        @data = data
        @totals = data[:totals]
        @threads = data[:threads]
        @labels = Labels.new(data)
        @behind = Behind.new(data)
      end

      # @return [String]
      def to_s
        return "The trace is empty: no thread was seen while it was recorded." if @threads.empty?

        [waiting, collecting].compact.join(" ")
      end

      private

      def waiting
        waiters = @threads.select { |thread| share(thread) >= SLIGHT && thread[:ready_s] >= SLIGHT_S }
        return calm if waiters.empty?

        blocking = waiters.reject { |thread| cpu_bound?(thread) }
        blocking.empty? ? turns(waiters) : waited(blocking)
      end

      def calm
        return idle if running_share < IDLE
        return "Only one thread ran, so nobody waited." if @threads.count { |thread| thread[:running_s].positive? } == 1
        return "Nobody waited: no thread had to ask for the GVL." if @totals[:ready_s].zero?

        "Nobody waited to speak of: #{duration(@totals[:ready_s])} for the GVL over all threads, " \
          "#{duration(@totals[:wait][:max_s])} at most at a time."
      end

      def idle
        "The program was idle: its threads ran for #{duration(@totals[:running_s])} of " \
          "#{duration(@data[:wall_s])}, and nobody waited to speak of."
      end

      def waited(waiters)
        most = waiters.map { |thread| thread[:ready_s] }.max
        worst = waiters.select { |thread| thread[:ready_s] >= MINOR * most }.max_by { |thread| share(thread) }
        alike = waiters.count { |thread| !thread.equal?(worst) && share(thread) >= 0.75 * share(worst) }
        "#{@labels.thread(worst[:id])} spent #{percent(share(worst))} of its time waiting" \
          "#{others(alike)}#{cause(worst)}.#{remedy(worst)}"
      end

      # As {Summary::Verdict} has it: under fair, what is left comes from threads that block too.
      def remedy(thread)
        policy = @data[:processes].find { |process| process[:id] == thread[:process] }&.fetch(:policy)
        " With policy fair it would go first." unless policy == "fair"
      end

      def others(count)
        return "" if count.zero?

        count == 1 ? ", another thread nearly as much" : ", #{count} more threads nearly as much"
      end

      def cause(thread)
        method, part = @behind.method_of(thread)
        return "; #{percent(part)} of that behind `#{method}`" if part && part >= TELLING

        holder, part = @behind.holder_of(thread)
        return "; #{percent(part)} of that behind #{@labels.thread(holder)}" if part && part >= TELLING

        count = thread[:waited_for].count { |one| one[:thread] }
        count > 1 ? ", behind #{count} threads in turn" : ""
      end

      def turns(waiters)
        worst = waiters.max_by { |thread| share(thread) }
        "Only CPU-bound threads waited, and for one another (#{@labels.thread(worst[:id])}: " \
          "#{percent(share(worst))} of its time): one GVL is one CPU, so more such threads gain nothing."
      end

      # A collection stops every thread of its process, so the share is of the processes' time.
      def collecting
        collected = @totals[:gc_s]
        spent = lifetime
        return if spent.zero? || collected / spent < MUCH_GC

        "Garbage collection took #{percent(collected / spent)} of the time " \
          "(#{duration(collected)} in #{@data[:gc][:count]} #{@data[:gc][:count] == 1 ? "stop" : "stops"}), " \
          "and no thread could run meanwhile."
      end

      def cpu_bound?(thread)
        thread[:suspended_s] < CPU_BOUND * (thread[:running_s] + thread[:suspended_s])
      end

      def running_share
        lifetime.zero? ? 0.0 : @totals[:running_s] / lifetime
      end

      def lifetime
        @data[:processes].sum { |process| process[:end_s] - process[:start_s] }
      end

      def share(thread)
        time = thread[:running_s] + thread[:ready_s] + thread[:suspended_s]
        time.zero? ? 0.0 : thread[:ready_s] / time
      end

      def duration(seconds) = Summary::Text.duration(seconds)

      def percent(fraction) = Summary::Text.percent(fraction)
    end
  end
end
