# frozen_string_literal: true

require_relative "labels"

module Headway
  module Report
    # What no blame tells of, where nothing is marked: threads that wait for a lock. What else they wait for, a queue or a socket, say, may be
    # all that they are there for.
    module Locks
      # Of the time that such threads lived, from here on it is worth a sentence.
      MUCH = 0.2
      FROM_S = 0.1
      private_constant :MUCH, :FROM_S

      class << self
        # @param threads [Array<Hash>] rows of the trace's, where it has no work
        # @param behind [Behind] that knows frames
        # @param labels [Labels]
        # @return [String, nil] nil: it isn't much
        def sentence(threads, behind, labels)
          threads = threads.select { |thread| thread[:blocked].any? { |stack| behind.at_a_lock?(stack) } }
          stacks = threads.flat_map { |thread| thread[:blocked].select { |stack| behind.at_a_lock?(stack) } }
          lived_s = threads.sum { |thread| thread[:end_s] - thread[:start_s] }
          locked_s = sum(stacks)
          return if locked_s < [FROM_S, MUCH * lived_s].max

          "#{who(threads, labels)} blocked at locks for #{Summary::Text.percent(locked_s / lived_s)} of the time, " \
            "#{behind.for_the_gvl?(locked_s) ? "where whoever had these may have waited for the GVL" : "which no policy changes"}: " \
            "#{share_of_most(stacks, behind)}."
        end

        private

        def who(threads, labels) = threads.one? ? "#{labels.thread_in_text(threads.first[:id])} was" : "#{threads.size} threads were"

        def share_of_most(stacks, behind)
          method, most = stacks.group_by { |stack| behind.method_at(behind.telling(stack)) }.max_by { |_, same| sum(same) }
          "#{Summary::Text.percent(sum(most) / sum(stacks))} of that in #{Labels.code(method, Labels.place(behind.telling(most.first).to_h))}"
        end

        def sum(stacks) = stacks.sum { |stack| stack[:s] }
      end
    end
    private_constant :Locks
  end
end
