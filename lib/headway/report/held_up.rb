# frozen_string_literal: true

require_relative "document"

module Headway
  module Report
    # How much of what requests, or without any threads, wait for is other threads, by the stacks of those that were blocked. A lock, or a pool that is used up,
    # takes no more of them at a time however many threads there are.
    class HeldUp
      # Of requests' time: with less of it what becomes of it doesn't decide.
      MUCH = 0.2
      private_constant :MUCH

      # @param paths [Array<String>] a trace's files
      # @return [String, nil] a sentence without its end; nil: it isn't much, or the trace doesn't tell
      def self.by(paths)
        new(Document.new(Trace.open(*paths)).to_h).to_s
      rescue Trace::Error # its file has gone meanwhile
        nil
      end

      # @param data [Hash] as {Document#to_h} returns it
      def initialize(data)
        @rows = data[:work].any? ? data[:work] : data[:threads].map { |thread| { **thread, total_s: lived(thread) } }
        @behind = Behind.new(data)
      end

      # @return [String, nil]
      def to_s
        stacks = @rows.flat_map { |row| row[:blocked].select { |stack| @behind.for_a_thread?(stack) } }
        waited_s = seconds(stacks)
        return if waited_s.zero? || waited_s < MUCH * @rows.sum { |row| row[:total_s] }

        share = waited_s / @rows.sum { |row| Elsewhere.seconds(row) }
        "#{Summary::Text.percent([share, 1.0].min)} of the delays are waits for other threads, most of them in #{most(stacks)}: " \
          "where that is a lock or a pool of connections, more threads gain nothing"
      end

      private

      def lived(thread) = thread.values_at(:running_s, :ready_s, :suspended_s).sum

      def seconds(stacks) = stacks.sum { |stack| stack[:s] }

      def most(stacks)
        longest = stacks.group_by { |stack| @behind.telling(stack) }.max_by { |_, same| seconds(same) }.last.max_by { |stack| stack[:s] }
        frame = @behind.telling(longest)
        leaf = @behind.leaf(longest)
        place = Labels.place(frame)
        "#{Labels.code(@behind.method_at(frame), place.empty? ? nil : place)}" \
          "#{", at `#{Summary::Text.plain(Labels.method_of(leaf))}`" unless leaf.equal?(frame)}"
      end
    end
  end
end
