# frozen_string_literal: true

module Headway
  module CLI
    module Top
      # What a process was doing between two answers; of the first one, since Headway started in it.
      class Sample
        # A thread: its share of the time as a fraction, its waits and holds in seconds, and how often it was preempted a second.
        Row = Struct.new(:name, :state, :batch, :run, :wait, :wait_p50, :wait_p99, :hold_p50, :hold_p99, :preempted,
                         keyword_init: true)

        # @param stats [Hash] an answer to {"get":"stats"}
        # @param before [Sample, nil]
        def initialize(stats, before = nil)
          @stats = stats
          @before = before if before && before.stats[:pid] == stats[:pid] && before.stats[:wall] < stats[:wall]
        end

        attr_reader :stats

        # @return [Float] seconds
        def seconds = @stats[:wall] - (@before ? @before.stats[:wall] : 0)

        # @return [Boolean] whether it is about an interval, not about all the time
        def interval? = !@before.nil?

        # @return [Array<Row>]
        def rows
          @rows ||= living.map { |thread| row(thread, @before&.thread(thread[:number])) }
        end

        # @return [Float] threads that ran, and that waited, at a time
        def running = rate(:running)
        def waiting = rate(:ready)

        # @return [Float] a second
        def switches = switch_rate(:voluntary) + switch_rate(:preempted)
        def preempted = switch_rate(:preempted)

        # Of the process. As exact as the answer's buckets are: within one, waits are taken to be spread evenly.
        #
        # @return [Hash] count, p50, p99, max; those in seconds, nil without a wait
        def waits
          buckets = self.buckets
          count = buckets.sum { |_, _, waits| waits }
          { count: count, p50: percentile(buckets, count * 0.5), p99: percentile(buckets, count * 0.99), max: buckets.last&.at(1) }
        end

        # Requests and jobs that ended.
        #
        # @return [Hash] of each kind of which there were: per_s, and the share of their time that they waited for the GVL
        def works
          ended = @stats.fetch(:work, {}).keys.to_h { |kind| [kind, work_gain(kind)] }.select { |_, works| works[:count].positive? }
          ended.transform_values do |works|
            { per_s: works[:count] / seconds, waited: share(works[:ready], works.values_at(:running, :ready, :suspended).sum) }
          end
        end

        # @return [Hash, nil] a thread of the answer
        def thread(number)
          @by_number ||= living.to_h { |thread| [thread[:number], thread] }
          @by_number[number]
        end

        private

        # That waits fell into: from, to, how many.
        def buckets
          before = @before ? counts(@before.stats) : {}
          counts(@stats).filter_map { |(from, to), count| [from, to, count - before.fetch([from, to], 0)] }
                        .select { |_, _, count| count.positive? }
        end

        def counts(stats) = stats[:process][:wait_histogram].to_h { |bucket| [bucket.values_at(:from_s, :to_s), bucket[:count]] }

        def percentile(buckets, rank)
          buckets.each do |from, to, count|
            return from + ((to - from) * rank / count) if rank <= count

            rank -= count
          end
          nil
        end

        def living = @stats[:threads].select { |thread| thread[:alive] }

        def row(thread, before)
          times = %i[running ready suspended].to_h { |state| [state, positive(thread[state] - (before ? before[state] : 0))] }
          total = times.values.sum
          Row.new(name: name(thread), state: thread[:state], batch: thread[:batch],
                  run: share(times[:running], total), wait: share(times[:ready], total),
                  **spread(thread, :wait), **spread(thread, :hold),
                  preempted: share(thread[:switches][:preempted] - (before ? before[:switches][:preempted] : 0), total))
        end

        # As reports tell apart threads of one name.
        def name(thread)
          @alike ||= living.map { |one| one[:name] }.tally
          @alike[thread[:name]] == 1 ? thread[:name] : "#{thread[:name]} (thread #{thread[:number]})"
        end

        def spread(thread, name)
          figures = thread[name]
          { "#{name}_p50": figures[:p50], "#{name}_p99": figures[:p99] }
            .transform_values { |value| figures[:count].zero? ? nil : value }
        end

        def rate(name) = share(positive(gain(:process, name)), seconds)

        def switch_rate(name) = share(gain(:process, :switches, name), seconds)

        def work_gain(kind)
          times = %i[running ready suspended].to_h { |state| [state, positive(gain(:work, kind, state))] }
          times.merge(count: gain(:work, kind, :wait, :count))
        end

        # Of what was in no answer before, as the first request, all.
        def gain(*keys) = @stats.dig(*keys) - (@before&.stats&.dig(*keys) || 0)

        def share(part, total) = total.positive? ? part / total.to_f : 0.0

        # The answer's figures are read one after the other: a state's time may seem to shrink by microseconds.
        def positive(value) = value.negative? ? 0.0 : value
      end
    end
  end
end
