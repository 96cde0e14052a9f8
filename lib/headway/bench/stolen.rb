# frozen_string_literal: true

module Headway
  module Bench
    # Measures how much of its CPUs' time a virtual machine didn't get, because its host ran others meanwhile: a thread that is to give
    # way, or to be woken, answers later by so much. Only Linux tells.
    class Stolen
      # Of a line's numbers: user, nice, system, idle, iowait, irq, softirq, steal. What follows is within the first two: proc_stat(5).
      COUNTED = 8
      private_constant :COUNTED

      # @param file [String]
      def initialize(file = "/proc/stat")
        @file = file
        @before = ticks
      end

      # @return [Float, nil] the share of all CPUs' time since this was made; nil: nobody knows
      def share
        now = ticks
        return unless @before && now

        stolen, all = now.zip(@before).map { |later, earlier| later - earlier }
        all.positive? ? stolen.clamp(0, all) / all.to_f : 0.0
      end

      private

      def ticks
        counts = File.foreach(@file).first.to_s[/\Acpu ([ \d]+)/, 1].to_s.split.first(COUNTED).map(&:to_i)
        [counts.last, counts.sum] if counts.size == COUNTED
      rescue SystemCallError
        nil
      end
    end
  end
end
