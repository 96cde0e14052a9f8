# frozen_string_literal: true

require_relative "labels"

module Headway
  module Report
    # What no blame tells of: requests and jobs that wait for something else than the GVL.
    module Elsewhere
      # Of all that work took, from here on it is worth a sentence.
      MOSTLY = 0.5
      # Of that, from here on what was computed is.
      MUCH_COMPUTED = 0.1
      # And with more of it for threads that may have waited for the GVL a policy changes it.
      MUCH_BY_THREADS = 0.2
      NEARLY_ALL = 0.9
      private_constant :MOSTLY, :NEARLY_ALL, :MUCH_COMPUTED, :MUCH_BY_THREADS

      class << self
        # @param work [Array<Hash>] rows of the trace's
        # @param behind [Behind] that knows frames
        # @return [String, nil] of the kind that spent most of its time so; nil: all of it didn't spend much
        def sentence(work, behind)
          return if work.empty? || work.sum { |kind| seconds(kind) } < MOSTLY * work.sum { |kind| kind[:total_s] }

          kind = work.max_by { |one| seconds(one) }
          "#{Labels.work(kind)} spent #{Summary::Text.percent(seconds(kind) / kind[:total_s])} of its #{Summary::Text.duration(kind[:total_s])} " \
            "neither running nor waiting for the GVL" \
            "#{", which no policy changes" unless for_the_gvl?(kind[:blocked], behind, MUCH_BY_THREADS * seconds(kind))}: #{where(kind, behind) || at_what(kind)}."
        end

        # @param kind [Hash] a row of the trace's work
        # @return [Float] of its time, neither running nor ready
        def seconds(kind) = [kind[:total_s] - kind[:running_s] - kind[:ready_s], 0.0].max

        private

        def for_the_gvl?(stacks, behind, least_s)
          by_threads_s = sum(stacks.select { |stack| behind.by_a_thread?(stack) })
          by_threads_s.positive? && by_threads_s >= least_s && behind.for_the_gvl?(by_threads_s)
        end

        # The method of the program in which it was blocked longest, and the call that blocked.
        def where(kind, behind)
          method, stacks = kind[:blocked].group_by { |stack| behind.method_at(behind.telling(stack)) }.max_by { |_, all| sum(all) }
          return if method.nil? || sum(stacks) < MOSTLY * seconds(kind)

          frame = behind.telling(stacks.first)
          return if frame.nil? # the trace was cut short before it was written

          call, at_it = stacks.group_by { |stack| behind.leaf(stack) }.max_by { |_, same| sum(same) }
          "#{Summary::Text.percent([sum(stacks) / seconds(kind), 1.0].min)} of that in #{Labels.code(method, Labels.place(frame))}" \
            "#{", #{most(at_it, stacks)}at #{Labels.quoted(Labels.method_of(call))}" unless call.equal?(behind.telling(at_it.first))}" \
            "#{", for another thread, which may have waited for the GVL itself" if for_the_gvl?(at_it, behind, MOSTLY * sum(stacks))}#{computed(kind)}"
        end

        # Who has a lock does something else with it, in the same method.
        def most(some, all)
          share = sum(some) / sum(all)
          return if share >= NEARLY_ALL

          share >= MOSTLY ? "mostly " : "longest "
        end

        def sum(stacks) = stacks.sum { |stack| stack[:s] }

        def computed(kind)
          "; for #{Summary::Text.duration(kind[:computed_s])} of it it computed without the GVL" if computed?(kind)
        end

        def computed?(kind) = kind[:computed_s] >= MUCH_COMPUTED * seconds(kind)

        # Who computes waits for a processor, too, as long as that may take.
        def at_what(kind)
          unless computed?(kind)
            return "I/O, sleep, a lock, a wait for a connection, or native code without the GVL"
          end

          "for #{Summary::Text.duration(kind[:computed_s])} of that it computed without the GVL; the rest is a wait for a processor, I/O, sleep, " \
            "or a lock"
        end
      end
    end
    private_constant :Elsewhere
  end
end
