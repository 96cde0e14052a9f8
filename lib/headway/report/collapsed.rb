# frozen_string_literal: true

module Headway
  module Report
    # Blame as collapsed stacks, a line each: the holder, its frames root first, and the microseconds that others waited
    # meanwhile (by all who waited: two threads that wait a second make two).
    class Collapsed
      # @param document [Document]
      def initialize(document)
        @blame = document.to_h[:blame]
        @labels = document.labels
        @frames = @blame[:frames].map { |frame| plain(Labels.frame(frame)) }
      end

      # @param output [IO]
      def write(output)
        weights.each { |stack, weight| output << stack << " " << [(weight * 1e6).round, 1].max << "\n" }
      end

      private

      def weights
        sums = Hash.new(0.0)
        @blame[:stacks].each do |stack|
          next unless stack[:weight_s].positive?

          frames = stack[:frames].reverse.map { |index| @frames[index] || "?" }
          sums[[plain(@labels.thread(stack[:thread])), *frames].join(";")] += stack[:weight_s]
        end
        sums.sort
      end

      # What separates frames and lines cannot be in one.
      def plain(text)
        clean = Summary::Text.plain(text).tr(";", "_")
        clean.empty? ? "?" : clean
      end
    end
  end
end
