# frozen_string_literal: true

require_relative "labels"

module Headway
  module Report
    # Turns of an event loop that were too long, as {FiberScheduler} marks them: all that runs on the loop stood still, though
    # nobody need have waited for the GVL.
    class Stalls
      MARK = /\Aloop stall of (\d+) ms: (?:(.+):(\d+):in [`'](.+)'\z)?/m
      # On a thread of the pool it gives way to the loop.
      REMEDY = " Under policy fair, `Headway.offload { ... }` around that lets the other fibers go on."
      private_constant :MARK, :REMEDY

      # @param data [Hash] as {Trace#to_h} returns it
      # @param busy [Busy]
      # @param least [Float] shares of the loop's time below it are not worth a word
      def initialize(data, busy, least)
        stalls = data[:marks].filter_map { |mark| (match = MARK.match(mark[:name].scrub)) && [mark[:thread], match] }
        loops = stalls.group_by(&:first)
        threads = data[:threads].to_h { |thread| [thread[:id], thread] }
        loops.select! { |id, its| sum_s(its.map(&:last)) >= least * busy.of_thread(threads.fetch(id)).first }
        @worst = loops.values.map { |its| its.map(&:last) }.max_by { |its| sum_s(its) }
      end

      # @return [String, nil] of the loop that stood still longest
      def sentence
        return unless @worst

        at = @worst.group_by { |stall| stall[2..] }.values.max_by { |stalls| sum_s(stalls) }
        "The event loop stood still #{times(at)}.#{REMEDY unless place(at).empty?}"
      end

      private

      def times(at)
        return "for #{duration(sum_s(@worst))}#{place(@worst)}" if @worst.one?

        most = ", #{at.size == @worst.size ? "" : "for #{duration(sum_s(at))} of that "}#{place(at).lstrip}" unless place(at).empty?
        "#{@worst.size} times, for #{duration(sum_s(@worst))} in all#{most}"
      end

      def sum_s(stalls) = stalls.sum { |stall| stall[1].to_f } / 1e3

      def place(stalls)
        _, _, file, line, method = stalls.first.to_a
        method ? " in #{Labels.code(method, "#{file}:#{line}")}" : ""
      end

      def duration(seconds) = Summary::Text.duration(seconds)
    end
    private_constant :Stalls
  end
end
