# frozen_string_literal: true

require_relative "boot"
require_relative "document"

module Headway
  module Report
    # How much of what requests, or where there are none threads, wait for is other threads, by the stacks of those that were blocked. A
    # lock, or a pool that is used up, takes no more of them at a time however many threads there are; and how long who has it keeps it may be
    # a wait for the GVL, which is shorter or longer under another policy, while a delay stays what it was. So may be what threads of a
    # request's own take that it waits for.
    class HeldUp
      # Of requests' time: with less of it what becomes of it doesn't decide.
      MUCH = 0.2
      private_constant :MUCH

      # @param paths [Array<String>] a trace's files
      # @return [HeldUp, nil] nil: it isn't much, or the trace doesn't tell
      def self.by(paths)
        held_up = new(Document.new(Trace.open(*paths)).to_h)
        held_up if held_up.much?
      rescue Trace::Error # its file has gone meanwhile
        nil
      end

      # @param data [Hash] as {Document#to_h} returns it
      def initialize(data)
        @rows = data[:work].any? ? data[:work] : data[:threads].map { |thread| { **thread, total_s: thread[:end_s] - thread[:start_s] } }
        @behind = Behind.new(Boot.left_out(data))
        blocked = @rows.flat_map { |row| row[:blocked] }
        @in_line_s = seconds(blocked.select { |stack| @behind.for_a_thread?(stack) })
        # Without work whoever waits for a thread's end is mostly the one that started all of them.
        @stacks = blocked.select { |stack| data[:work].any? ? @behind.by_a_thread?(stack) : @behind.for_a_thread?(stack) }
        @waited_s = seconds(@stacks)
      end

      # @return [Boolean]
      def much? = in_line? || (much_of?(@waited_s) && by_the_gvl?)

      # @return [Boolean] whether more threads may gain nothing
      def in_line? = much_of?(@in_line_s)

      # @return [Boolean] whether another policy, which changes waits for the GVL, may change these delays, too
      def by_the_gvl? = @behind.for_the_gvl?(@waited_s)

      # @return [String] a sentence without its end
      def to_s
        share = @waited_s / @rows.sum { |row| Elsewhere.seconds(row) }
        "#{Summary::Text.percent([share, 1.0].min)} of the delays are waits for other threads, most of them in #{most}: " \
          "#{[more_threads, another_policy].compact.join(", and ")}"
      end

      private

      def more_threads = ("where that is a lock or a pool of connections, more threads gain nothing" if in_line?)

      def another_policy
        return unless by_the_gvl?

        "another policy may gain far more or less than is predicted, as #{in_line? ? "who has it" : "these"} waited for the GVL"
      end

      def much_of?(waited_s) = waited_s.positive? && waited_s >= MUCH * @rows.sum { |row| row[:total_s] }

      def seconds(stacks) = stacks.sum { |stack| stack[:s] }

      def most
        longest = @stacks.group_by { |stack| @behind.telling(stack) }.max_by { |_, same| seconds(same) }.last.max_by { |stack| stack[:s] }
        frame = @behind.telling(longest)
        leaf = @behind.leaf(longest)
        "#{Labels.code(@behind.method_at(frame), Labels.place(frame))}" \
          "#{", at #{Labels.quoted(Labels.method_of(leaf))}" unless leaf.equal?(frame)}"
      end
    end
  end
end
