# frozen_string_literal: true

require_relative "../predict"
require_relative "../report"

module Headway
  module Predict
    # What a trace can carry: why nothing can be predicted from it, why one setting can't, and what to bear in mind.
    class Grounds
      REQUESTS_LEAST = 30
      DROPPED_MOST = 0.01
      # Delays this much longer among many others than among few depend on them.
      DELAYS_GROW = 1.25
      # As much longer as there are more of them: nothing more gets through.
      SATURATED = 0.75
      # Of requests' time: with less of it in delays, what becomes of these doesn't decide.
      MUCH_DELAY = 0.2
      # Of what was recorded, requests at a time: beyond it delays may be others, and later on anything may.
      MANY_MORE = 1.5
      TIMES_MOST = 8
      # Of the time with the GVL: with less of it on no processor, the machine isn't what decides.
      MUCH_OFF_CPU = 0.1
      # Requests take so many times as long from their arrival on as they did once they had a thread: more than the model is wrong by.
      QUEUED = 1.25
      # Classes in a sentence.
      MOST_RARE = 5
      # Threads of servers: some of them take requests, others help. And the program, which has none of them yet while it boots.
      SERVER = /\A(?:puma |sidekiq)/
      SERVER_PROGRAM = %r{\A(?:\S*/)?(?:puma|sidekiq|good_job|que|shoryuken|bin/jobs):?(?= |\z)|\Asolid-queue-}
      # What the core calls threads and requests whose names the trace doesn't have.
      NAMELESS_THREAD = "(thread)"
      NAMELESS_REQUEST = "(unnamed)"

      # @param workload [Workload]
      def initialize(workload)
        @workload = workload
        @ratio, @crowd_ratio = workload.facts[:delays_by_load]
        @at_once = workload.most_at_once * workload.processes_at_once
      end

      # @return [String, nil] why nothing can be predicted
      def refusal
        return server_unmarked if server_unmarked?
        return nameless if nameless?
        return unlike if unlike?

        crowd = crowd(recorded) and return crowd
        events, dropped = %i[events dropped].map { |key| @workload.facts[:processes].sum { |process| process[key] } }
        if @workload.count < REQUESTS_LEAST
          "there are only #{@workload.count} #{@workload.things} in the trace: record #{REQUESTS_LEAST} at least, better thousands"
        elsif process_each? then "most jobs had a process of their own, which ended with them: what starting one takes isn't in the trace"
        elsif dropped > DROPPED_MOST * (events + dropped)
          "#{(100.0 * dropped / (events + dropped)).round(1)} % of the events were dropped while recording: record again, with a larger ring"
        end
      end

      # @param setting [Setting]
      # @return [String, nil] why it can't be predicted
      def refusal_of(setting)
        crowd = crowd(setting) and return crowd
        return if setting.all_threads <= @at_once || as_recorded?(setting)

        if saturated? then "what is waited for is saturated: delays got #{grown} times as long with #{crowded} times as many at a time"
        elsif delays_grow? then "delays depend on load: #{grown} times as long with #{crowded} times as many at a time"
        elsif setting.all_threads > TIMES_MOST * @at_once
          "recorded with #{@at_once} at a time: #{setting.all_threads} are too far from that"
        end
      end

      # @return [Array<String>]
      def cautions
        [unmarked, idle, off_cpu, untold, growing, held_up&.to_s, rare, unnamed, damaged].compact
      end

      # @return [Boolean] delays grow as fast as their number: more of them at a time get no more done
      def saturated? = delays_grow? && @ratio - 1 >= SATURATED * (@crowd_ratio - 1)

      # More threads gain nothing where what they wait for (a pool of connections, a Mutex) takes no more of them at a time.
      #
      # @param setting [Setting]
      # @return [String, nil] why what is predicted of more threads than were recorded may not come true
      def doubt_of(setting)
        return held_up.to_s if held_up && doubtful?(setting)

        more = setting.all_threads > [MANY_MORE * @at_once, recorded.all_threads].max
        return if @ratio || !more || delay_share < MUCH_DELAY

        "up to #{setting.all_threads} #{@workload.things} would be under way at a time, instead of #{@at_once}: if they wait for a pool of " \
          "connections, a Mutex or a busy database, that gains nothing"
      end

      # A trace knows nothing of clients that wait for their answers, and of the queue in front of the threads only what it is told.
      #
      # @param figures [Figures] of the setting recorded, at the rate recorded
      # @param name [String] what that setting is called
      # @return [String, nil] why they are not what was recorded
      def queued(figures, name)
        return queued_beforehand if figures.setting.rate.nil?

        samples_ms = figures.samples("mean_ms")
        predicted_ms = samples_ms.first
        return if predicted_ms.nil? # too slow, or too few for a mean
        return if figures.cores < @workload.cores # which may be why

        recorded_ms = 1000 * (@workload.latency[:mean_s] + (@workload.queued_s || 0))
        return if predicted_ms < QUEUED * recorded_ms || samples_ms.min <= recorded_ms # which requests were recorded may be why

        "#{name} comes out at #{ms(predicted_ms)} ms a #{@workload.thing}, where #{ms(recorded_ms)} were recorded: that many that " \
          "come at random would meet more often, and wait for a thread or the GVL. #{CLOSED.capitalize}"
      end

      private

      # Seen by stacks, whether or not the delays were seen to grow: those beside them may hide it.
      def held_up
        return if delay_share < MUCH_DELAY
        return @held_up if defined?(@held_up)

        @held_up = Report::HeldUp.by(@workload.paths)
      end

      # A job stands in a queue for as long as nobody has time for it.
      def queued_beforehand
        queued_s = @workload.queued_s
        return if queued_s.nil? || @workload.jobs? || queued_s < (QUEUED - 1) * @workload.latency[:mean_s]

        "#{@workload.things} stood in a queue for #{ms(1000 * queued_s)} ms on average before one of the threads, which were always busy, took " \
          "them: --rate #{Predict.per_second(@workload.rate)} tells how long they would with each setting, if as many come at random"
      end

      def ms(value) = value >= 10 ? value.round : format("%.2g", value)

      def recorded = @recorded ||= Predict.recorded(@workload)

      # As many threads, at the same rate, of which no more are busy at a time than there were.
      def as_recorded?(setting) = %i[processes threads rate].all? { |key| setting.public_send(key) == recorded.public_send(key) }

      def doubtful?(setting)
        (held_up.in_line? && setting.threads > recorded.threads) || (held_up.by_the_gvl? && !policy_as_recorded?(setting))
      end

      def policy_as_recorded?(setting) = %i[policy quantum_ms].all? { |key| setting.public_send(key) == recorded.public_send(key) }

      def crowd(setting)
        threads = setting.processes * (setting.threads + @workload.threads_beside)
        "it takes #{threads} threads: #{Workload::THREADS_MOST} at most can be simulated" if threads > Workload::THREADS_MOST
      end

      def delay_share
        delays_s = @workload.kinds.sum { |kind| kind.count * kind.delay_s }
        all_s = @workload.kinds.sum { |kind| kind.count * (kind.gvl_s + kind.cpu_s + kind.delay_s + kind.wait_s) }
        all_s.zero? ? 0.0 : delays_s / all_s
      end

      # Taken as workers the helpers, which sleep, would make any advice look good.
      def server_unmarked?
        return false if @workload.marked?

        @workload.kinds.any? { |kind| kind.name.match?(SERVER) } || @workload.typical_process[:command].to_s.match?(SERVER_PROGRAM) ||
          Server.of(@workload)&.one_thread?
      end

      def server_unmarked
        "no requests are marked, which a server's trace needs: record again with `use Headway::Rack` first in config.ru, or with " \
          "Headway::Sidekiq.install; in Rails gem \"headway\" is enough, and elsewhere Headway::Work.start begins one (docs/servers.md)"
      end

      # Cut short before their names were written, so that a server can't be told by them.
      def nameless? = !@workload.marked? && damage && @workload.kinds.any? { |kind| kind.name == NAMELESS_THREAD }

      def nameless
        "it was cut short before it had its threads' names, and no requests are marked: whether it is a server's can't be told; record for " \
          "longer, and end the process with TERM or Ctrl-C"
      end

      # Resque forks for each job. Such processes are never idle, and between two of them there would be no time.
      def process_each? = @workload.marked? && @workload.jobs? && @workload.count < 2 * @workload.processes.size

      # All processes are taken for alike, each of which may do any of the requests.
      def unlike? = sidekiqs_and_others.none?(&:empty?)

      def unlike
        sidekiqs, others = sidekiqs_and_others.map { |processes| processes.map { |process| process[:pid] }.join(", ") }
        "it is of Sidekiq (PID #{sidekiqs}) and of another program (PID #{others}), which do none of each other's work: give the files " \
          "of one of them"
      end

      def sidekiqs_and_others = @workload.processes.partition { |process| @workload.sidekiq?(process) }

      def damage = @workload.facts[:processes].filter_map { |process| process[:damage] }.first

      def delays_grow? = @ratio && @ratio > DELAYS_GROW

      def grown = @ratio.round(1)

      def crowded = @crowd_ratio.round(1)

      def unmarked
        return if @workload.marked?

        "no requests are marked: figures are of whole threads, burst by burst (Headway::Rack and Headway::Sidekiq mark them, and so does " \
          "Headway.mark(\"name\") { ... } around one)"
      end

      def idle
        idle = @workload.idle_threads
        return if idle.zero?

        threads = idle + @workload.processes.sum { |process| process[:workers] }
        "#{idle} of #{threads} threads of the pool had no #{@workload.thing} as long as this was recorded: figures are of the #{@workload.threads} " \
          "of each process that had"
      end

      def off_cpu
        running, off = %i[running off_cpu].map { |key| @workload.processes.sum { |process| process[key] } }
        return if off < MUCH_OFF_CPU * running || off.zero?

        "for #{(100.0 * off / running).round} % of the time that the GVL was held the holder was on no processor (other programs, a quota or " \
          "threads without the GVL took it, or native code slept): that is taken for work"
      end

      def untold
        return if @ratio || @workload.kinds.all? { |kind| kind.delay_s.zero? }

        "whether delays grow with load the trace doesn't tell (never enough of them at different times at once): taken as they are"
      end

      def growing
        return unless delays_grow?

        "#{saturated? ? "what is waited for is saturated (delays are " : "delays grow with load ("}#{grown} times as long with #{crowded} times " \
          "as many at a time): no setting with more than #{@at_once} threads is predicted, and those with fewer may come out too slow"
      end

      def rare
        short = @workload.kinds.select { |kind| kind.count < Figures::LEAST.fetch("p99_ms") }.map { |kind| "#{kind.name} (#{kind.count})" }
        more = ("and #{short.size - MOST_RARE} more" if short.size > MOST_RARE)
        "too rare in the trace for a p99: #{[*short.first(MOST_RARE), *more].join(", ")}" unless short.empty? || !@workload.marked?
      end

      def unnamed
        count = @workload.kinds.sum { |kind| kind.name == NAMELESS_REQUEST ? kind.count : 0 }
        "the trace lacks the names of #{count} of #{@workload.count} #{@workload.things}: they count as one class, #{NAMELESS_REQUEST}" if count.positive?
      end

      def damaged
        return unless damage
        return "a trace is damaged and was read up to there: #{damage}" unless Trace.endless?(damage)

        "a trace has no end, as its process was #{Trace::ENDLESS}: it was read up to there"
      end
    end
  end
end
