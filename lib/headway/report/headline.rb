# frozen_string_literal: true

require_relative "labels"
require_relative "behind"
require_relative "boot"
require_relative "busy"
require_relative "elsewhere"
require_relative "locks"
require_relative "pool"
require_relative "remedy"
require_relative "stalls"

module Headway
  module Report
    # What a trace says, in one or two plain sentences: who waited, at what work, behind which line of which work, and what to do.
    class Headline
      SLIGHT = Summary::Verdict::SLIGHT
      SLIGHT_S = Summary::Verdict::SLIGHT_S
      WAKING_S = Summary::Verdict::WAKING_S
      CPU_BOUND = Summary::Verdict::CPU_BOUND
      # Work that computes for less than this is no competitor either, though it doesn't block: its thread does, before it.
      BURST_S = 0.005
      # Who computes for so long each time it is through with waiting, and for longer than it waits, gains little by going first.
      LONG_BURST_S = 0.02
      # A method, thread or kind of work that had less than this share of a wait doesn't explain it.
      TELLING = 0.25
      # Of a wait, what no policy changes: from here on there is none to recommend.
      MOSTLY = 0.5
      # Who held the GVL for so much of the time had no more to give.
      FULL = 0.9
      # In less time any process is busy all the time.
      FULL_FROM_S = 1
      # From this share of the time on, garbage collection is worth a sentence.
      MUCH_GC = 0.1
      # A kind of work of which there was little is no example, whatever its share: what all of the longest waiter did is what hurts.
      MUCH_OF_MOST = 0.5
      # Waits that get no advice come after what work did otherwise.
      MUCH = Summary::Verdict::MUCH
      LONG_S = Summary::Verdict::LONG_S
      IDLE = 0.02
      private_constant :SLIGHT, :SLIGHT_S, :CPU_BOUND, :BURST_S, :LONG_BURST_S, :TELLING, :MOSTLY, :WAKING_S, :FULL, :FULL_FROM_S, :MUCH_GC,
                       :MUCH_OF_MOST, :MUCH, :LONG_S, :IDLE

      # @param data [Hash] as {Trace#to_h} returns it
      # @param paths [Array<String>, nil] of its files; nil: by their names
      # @return [String]
      def self.of(data, paths: nil)
        new(data, paths || data[:processes].map { |process| process[:file] }).to_s
      end

      def initialize(data, paths)
        @data = data = Boot.left_out(data)
        @totals = data[:totals]
        @loaded = @totals[:since_work]
        @threads = data[:threads]
        @booted = @threads.any? { |thread| thread[:boot] }
        @work = data[:work]
        @labels = Labels.new(data)
        @behind = Behind.new(data)
        @busy = Busy.new(data)
        @remedy = Remedy.new(data, paths)
        @stalls = Stalls.new(data, @busy, SLIGHT)
      end

      # @return [String]
      def to_s
        return "The trace is empty: no thread was seen while it was recorded." if @threads.empty?

        waits = waiting
        besides = [@work.any? ? Elsewhere.sentence(@work, @behind) : Locks.sentence(@threads, @behind, @labels), pool]
        of_work = @complaint == :slight ? [*besides, waits] : [waits, (full if @complaint), *besides]
        [*of_work, processor_time, @stalls.sentence, collecting].compact.join(" ")
      end

      private

      def waiting
        work = complaints(@work)
        work = [] unless telling?(work)
        waiters = work.any? ? work : beside_work(complaints(@threads))
        @complaint = (much?(waiters) ? :much : :slight if waiters.any?)
        return worked(work) if work.any?
        return calm if waiters.empty?

        blocking = waiters.reject { |thread| cpu_bound?(thread) }
        return waited(blocking) unless Summary::Verdict.beside?(blocking, :ready_s, @totals[:ready_s]) { |thread| share(thread) }

        # Who had the GVL to themselves waited for a processor, not for one another.
        free?(waiters) ? waited(waiters) : turns(waiters) { |thread| @labels.thread_in_text(thread[:id]) }
      end

      # And worth to be told before what work spent its time with.
      def much?(waiters)
        @totals[:wait][:max_s] >= LONG_S && waiters.any? { |row| share(row) >= MUCH } &&
          waiters.sum { |row| row[:ready_s] } >= MUCH * work_s
      end

      # Of all waits it had a part that tells, or it is what the processes are there for, however many threads it starts that wait, too.
      def telling?(work)
        return true if work.sum { |kind| kind[:ready_s] } >= TELLING * @totals[:ready_s]

        @loaded && work_s >= TELLING * @loaded[:wall_s] && work.any? { |kind| share(kind) >= TELLING }
      end

      # Of a server, whose threads hardly run while they wait for a database, say, a little is much of their load.
      def beside_work(threads) = threads.sum { |thread| thread[:ready_s] } < SLIGHT * work_s ? [] : threads

      def work_s = @work.sum { |kind| kind[:total_s] }

      # Threads, or kinds of work.
      def complaints(rows)
        rows.select { |row| share(row) >= SLIGHT && row[:ready_s] >= SLIGHT_S && !waking?(row) }
      end

      def waking?(row)
        wait, free = row[:wait] ? [row[:wait], @behind.free_of(row)] : [@totals[:wait], @behind.free_of_all]
        wait[:max_s] < WAKING_S && free >= MOSTLY
      end

      def free?(threads)
        threads.sum { |thread| thread[:ready_s] * @behind.free_of(thread) } >= MOSTLY * threads.sum { |thread| thread[:ready_s] }
      end

      def calm
        return idle if running_share < IDLE && work_s <= TELLING * lifetime_s # else it is work that waits
        return alone if ran_alone?
        return "Nobody waited: no thread had to ask for the GVL." if @totals[:ready_s].zero?

        # The longest wait may be one of the boot.
        return "Nobody waited to speak of#{Busy::SINCE_WORK}: #{duration(@totals[:ready_s])} for the GVL over all threads." if @booted

        "Nobody waited to speak of: #{duration(@totals[:ready_s])} for the GVL over all threads, " \
          "#{duration(@totals[:wait][:max_s])} at most at a time."
      end

      # Nobody else's thread in their process, as in Unicorn's workers.
      def ran_alone?
        ran = @threads.select { |thread| thread[:running_s].positive? }
        ran.any? && ran.uniq { |thread| thread[:process] }.size == ran.size
      end

      def alone
        several = @threads.uniq { |thread| thread[:process] }.size > 1
        several ? "In each process only one thread ran, so nobody waited." : "Only one thread ran, so nobody waited."
      end

      def idle
        "The program was idle: its threads ran for #{duration(@totals[:running_s])} of " \
          "#{duration(@data[:wall_s])}, and nobody waited to speak of."
      end

      # -- work: what the trace calls its requests and jobs

      def worked(kinds)
        blocking = kinds.reject { |kind| computes?(kind) }
        return turns(kinds) { |kind| Labels.work(kind) } if blocking.empty? && @behind.free_of_all < MOSTLY

        worst = worst_of(blocking.empty? ? kinds : blocking, MUCH_OF_MOST)
        "#{Labels.work(worst)} spent #{percent(share(worst))} of its #{duration(worst[:total_s])} waiting for the GVL" \
          "#{cause_of_all}.#{advice(nil, worst, @behind.free_of_all, @behind.deaf_of_all)}"
      end

      # Samples say what held the GVL, not who waited meanwhile: so this is of all that waited.
      def cause_of_all
        free = @behind.free_of_all
        return "; #{percent(free)} of all waits were with the GVL free, as the system let threads run late" if free >= MOSTLY

        # Of those with the GVL free nothing was to be seen.
        method, part = @behind.method_of_all&.then { |what, seen| [what, seen * (1 - free)] }
        kind, its_part = kind_of_all(1 - free)
        method = nil unless part && part >= TELLING
        kind = nil unless its_part >= TELLING
        return "" unless method || kind
        return "; #{percent(its_part)} of all waits were behind #{Labels.work(kind)}" unless method

        "; #{percent(part)} of all waits were behind #{code(method)}#{culprit(method, kind, its_part)}"
      end

      # @param held [Float] in which share of all waits anybody held the GVL
      # @return [Array(Hash, Float)] the kind of work that held it in most of them, as far as that was seen, and in which share of all
      def kind_of_all(held)
        kind = @work.max_by { |one| one[:blamed_s] }
        weight_s = @data[:blame][:weight_s]
        [kind, weight_s.positive? ? held * kind[:blamed_s] / weight_s : 0.0]
      end

      # The heaviest kind of work needn't be what the heaviest method was called by.
      def culprit(method, kind, its_part)
        at = @behind.at_work(method, @work) and return ", #{at}"

        ", and by kind of work #{percent(its_part)} behind #{Labels.work(kind)}" if kind
      end

      def computes?(kind)
        rest = kind[:total_s] - kind[:ready_s]
        rest - kind[:running_s] < CPU_BOUND * rest && kind[:running_s] >= BURST_S * kind[:count]
      end

      # Then turns are all that a policy changes: who goes first, not how much is done.
      def full
        wall_s, running_s, off_cpu_s = @loaded&.values_at(:wall_s, :running_s, :off_cpu_s)
        return if wall_s.nil? || wall_s < FULL_FROM_S || !gvl_held? || off_cpu_s > TELLING * running_s

        "The GVL was held for #{percent(running_s / wall_s)} of the time since work began, which is all that one process can do: " \
          "more of them do more."
      end

      def gvl_held? = @loaded[:running_s] >= FULL * @loaded[:wall_s]

      # Where the GVL is held all the time more threads do no more.
      def pool
        Pool.new(@data[:processes], @remedy).sentence(!gvl_held?) if @loaded
      end

      # -- threads

      def waited(waiters)
        worst = worst_of(waiters)
        alike = waiters.count { |thread| !thread.equal?(worst) && share(thread) >= 0.75 * share(worst) }
        "#{@labels.thread_in_text(worst[:id])} spent #{percent(share(worst))} of #{@busy.of_thread(worst).last} waiting" \
          "#{others(alike)}#{cause(worst)}.#{advice(worst[:process], worst, @behind.free_of(worst), @behind.deaf_of(worst))}"
      end

      def others(count)
        return "" if count.zero?

        count == 1 ? ", another thread nearly as much" : ", #{count} more threads nearly as much"
      end

      def cause(thread)
        free = @behind.free_of(thread)
        return "; #{percent(free)} of that with the GVL free, as the system let it run late" if free >= MOSTLY

        method, part = @behind.method_of(thread)
        return "; #{percent(part)} of that behind #{code(method, thread)}" if part && part >= TELLING

        holder, part = @behind.holder_of(thread)
        return "; #{percent(part)} of that behind #{@labels.thread_in_text(holder)}" if part && part >= TELLING

        count = thread[:waited_for].count { |one| one[:thread] }
        count > 1 ? ", behind #{count} threads in turn" : ""
      end

      def cpu_bound?(thread)
        thread[:suspended_s] < CPU_BOUND * (thread[:running_s] + thread[:suspended_s])
      end

      def long_bursts?(row)
        row[:switches] && row[:running_s] >= [row[:ready_s], LONG_BURST_S * row[:switches][:voluntary]].max
      end

      # -- both

      def advice(process, row, free, deaf)
        return @remedy.processor(share(row)) if free >= MOSTLY
        return "#{@remedy.native_code}#{@remedy.once_heeded(process, share(row)) unless long_bursts?(row)}" if deaf >= MOSTLY
        return "" if long_bursts?(row)

        @remedy.sentence(process, share(row))
      end

      def worst_of(rows, least = Summary::Verdict::MINOR) = Summary::Verdict.worst_of(rows, :ready_s, least) { |row| share(row) }

      def code(method, thread = nil) = Labels.code(method, @behind.line_of(method, thread))

      def turns(rows)
        worst = rows.max_by { |row| share(row) }
        who = worst[:total_s] ? "work that computes waited, and for its like" : "CPU-bound threads waited, and for one another"
        time = worst[:total_s] ? "its time" : @busy.of_thread(worst).last
        "Only #{who} (#{yield worst}: #{percent(share(worst))} of #{time}): one GVL is one CPU, so more such threads gain nothing."
      end

      # Of a server its boot is left out, which is long, and slow for reasons of its own.
      def processor_time
        off_s, held_s = (@loaded || @totals).values_at(:off_cpu_s, :running_s)
        off_s = 0.0 if off_s < SLIGHT * (@loaded || @data)[:wall_s]
        quotas = @data[:processes].filter_map { |process| process[:quota] }
        Summary::ProcessorTime.sentence(off_s, held_s, quotas, since: @loaded && Busy::SINCE_WORK)
      end

      # A collection stops every thread of its process, so the share is of the processes' time.
      def collecting
        spent, words = @busy.of_all
        collected, count = @loaded ? @loaded.values_at(:gc_s, :gc_count) : [@totals[:gc_s], @data[:gc][:count]]
        return if spent.zero? || collected / spent < MUCH_GC

        "Garbage collection took #{percent(collected / spent)} of #{words} " \
          "(#{duration(collected)} in #{count} #{count == 1 ? "stop" : "stops"}), and no thread could run meanwhile."
      end

      def running_share = lifetime_s.zero? ? 0.0 : @totals[:running_s] / lifetime_s

      def lifetime_s = @data[:processes].sum { |process| process[:end_s] - process[:start_s] }

      def share(row)
        time = row[:total_s] || @busy.of_thread(row).first
        time.zero? ? 0.0 : row[:ready_s] / time
      end

      def duration(seconds) = Summary::Text.duration(seconds)

      def percent(fraction) = Summary::Text.percent(fraction)
    end
  end
end
