# frozen_string_literal: true

module Headway
  class Summary
    # One sentence that says what the figures mean.
    class Verdict
      # A report on a trace goes by these, too, as far as CPU_BOUND.

      # Less than this share of the time, or so little in all, is not worth a word of complaint.
      SLIGHT = 0.01
      SLIGHT_S = 0.005
      # Of a time in which somebody ran for less than this, the rest is left out: a server that nobody calls is idle, and so are its
      # threads.
      BUSY = 0.8
      # Who waited for less than this share of what the longest waiter did is no example of the trouble.
      MINOR = 0.1
      # With the GVL free, shorter waits are what it takes the system to wake a thread.
      WAKING_S = 0.01
      # A thread that blocks for less than this share of the time it isn't kept waiting competes for the GVL, it
      # doesn't just need it.
      CPU_BOUND = 0.1
      # From this share of a thread's time on, and with a wait as long as that, the rest of it is worth a question.
      MUCH = 0.05
      LONG_S = 0.01
      # Who held the GVL had less than this share of the waits: the rest of them the system let threads run late.
      CAUSED = 0.5
      # From this share on of what was seen of the waits, that comes first.
      DEAF = 0.5
      # Of what all waited, what they waited for who had run for 5 ms without blocking: only then fair lets others go first, and not in the
      # middle of a collection, which is in none of it. Not of what was run: few long holds may be what is waited for, beside many short ones.
      BATCH = 0.25
      # Of what all ran, from here on collections are what keeps the GVL.
      MUCH_GC = 0.25
      BRIEF = "No policy shortens that: who has the GVL mostly gives it up by itself within 5 ms. More processes do."
      COLLECTING = "No policy shortens that: collections of garbage keep the GVL. More processes do, or less garbage."
      UNDER_FAIR = "Policy fair is on already: of a recording (--record FILE), headway advise FILE says whether more processes help."
      private_constant :CAUSED, :DEAF, :BATCH, :MUCH_GC, :BRIEF, :COLLECTING, :UNDER_FAIR
      # What a report says then, too.
      NATIVE_CODE = "No policy cuts that short: for 50 ms and longer at a time it heeded no interrupt (native code that keeps the GVL, " \
                    "a garbage collection, or no processor to run on)."
      # How fair would let a thread go then. CRuby takes 10 ms off a slice for each interrupt that is heeded, so that ten pieces of native
      # code in a row, however long, keep others waiting; under fair it is one.
      ONCE_HEEDED = "after one such time, not after several"

      # @param rows [Array<Hash>] of threads, or of work
      # @param waited [Symbol] the key of how long each waited
      # @param least [Numeric] of what the longest waiter did
      # @yieldreturn [Numeric] for which share of its time
      # @return [Hash] the one that waited for most of its time, of those that waited for so long
      def self.worst_of(rows, waited, least = MINOR, &share)
        most = rows.map { |row| row[waited] }.max
        rows.select { |row| row[waited] >= least * most }.max_by(&share)
      end

      # @param rows (see .worst_of)
      # @param waited (see .worst_of)
      # @param all_s [Numeric] what all threads waited
      # @yieldreturn (see .worst_of)
      # @return [Boolean] there are none, or such as a main thread that joins the others: next to what those wait for one another it is nothing
      def self.beside?(rows, waited, all_s, &share)
        rows.sum { |row| row[waited] } < MINOR * all_s && rows.all? { |row| share.call(row) < MINOR }
      end

      # @param batch_s [Float] what was waited for batch threads
      # @param ready_s [Float] what all waited
      # @param gc_s [Float] what collections took
      # @param running_s [Float] what all ran
      # @return [String, nil] a sentence, where no policy shortens waits as fair could seldom let others go first
      def self.no_policy(batch_s, ready_s, gc_s, running_s)
        return if batch_s >= BATCH * ready_s

        gc_s >= MUCH_GC * running_s ? COLLECTING : BRIEF
      end

      # @param stats [Hash] as {Headway.stats} returns it
      # @param cpu_s [Float] what the process has computed, with the GVL or without
      # @param quota [Hash, nil] (see ProcessorTime.sentence)
      # @param gc_s [Float] what collections took
      # @param many_to_many [Boolean] whether threads share native threads, so that no policy is possible but observe
      def initialize(stats, cpu_s, gc_s: 0.0, quota: nil, many_to_many: false)
        @stats = stats
        @quota = quota
        @many_to_many = many_to_many
        @cpu_s = cpu_s
        @gc_s = gc_s
        @threads = stats.fetch(:threads)
        @process = stats.fetch(:process)
        @free_s = free_s
        @busy_s = @threads.sum { |thread| thread[:running] } + @free_s
      end

      # @return [String]
      def to_s = [waits, processor_time].compact.join(" ")

      private

      # What was computed without the GVL meanwhile hides as much.
      def processor_time
        held_s = @process[:running]
        ProcessorTime.sentence(held_s - @cpu_s, held_s, [@quota].compact, least: true)
      end

      def waits
        return "Nobody waited: no thread had to ask for the GVL." if @process[:wait][:count].zero?

        waiters = (works || @threads).select { |row| waited_share(row) >= SLIGHT && row[:ready] >= SLIGHT_S && !waking?(row) }
        return nobody if waiters.empty?

        blocking = waiters.reject { |row| cpu_bound?(row) }
        beside = Verdict.beside?(blocking, :ready, @process[:ready]) { |row| waited_share(row) }
        return turns(waiters) if beside && !free?

        waited(Verdict.worst_of(beside ? waiters : blocking, :ready) { |row| waited_share(row) })
      end

      # Requests or jobs, if they waited, are what it is about: their threads idle in between, and those that share a row are not told apart.
      #
      # @return [Array<Hash>, nil] one row, like a thread's
      def works
        kind, works = @stats[:work].max_by { |_, sums| sums[:ready] }
        return if works.nil? || works[:ready] < MINOR * @process[:ready]

        [works.merge(label: "#{kind.capitalize}s", count: nil)]
      end

      def nobody
        "Nobody waited to speak of: #{Text.duration(@process[:ready])} for the GVL over all threads, " \
          "#{Text.duration(@process[:wait][:max])} at most at a time."
      end

      def waited(row)
        sentence = "#{label(row)} waited #{share_of_time(row)} for the GVL (#{Text.duration(row[:ready])} of #{Text.duration(time(row))}#{halves(row)})"
        return sentence << "; most waits were with the GVL free, as the system let threads run late." if free?

        sentence << cause(row)
        deaf? ? sentence << ". " << NATIVE_CODE << once_heeded(row) : sentence << remedy(row)
      end

      # Under fair few may do all the waiting, and no less of it.
      def halves(row)
        return unless them?(row)

        half_s = row[:wait][:p50]
        ", half of them for #{half_s < 1e-6 ? "less than 1 µs" : "#{Text.duration(half_s)} or less"}"
      end

      def label(row) = row[:label] || Table.label(row)

      def them?(row) = row.key?(:label)

      # Of all waits, what nobody caused. A cause that isn't told apart is unknown, and then so is this.
      def free_s
        untold? ? 0.0 : [rest_s, 0.0].max
      end

      # Of all waits, what threads caused that are too many to be told apart, or nobody.
      def untold_s
        untold? ? rest_s : 0.0
      end

      def untold? = @threads.any? { |thread| thread[:caused].nil? }

      def rest_s = @process[:ready] - @threads.sum { |thread| thread[:caused] || 0.0 }

      def free? = @free_s > (1 - CAUSED) * @process[:ready]

      def waking?(thread)
        free_s = thread[:waited_for]&.sum { |part| part[:name] ? 0.0 : part[:seconds] }
        thread[:wait][:max] < WAKING_S && (free_s ? free_s > (1 - CAUSED) * thread[:ready] : free?)
      end

      def deaf?
        blame = @stats.fetch(:blame)
        blame[:weight].positive? && blame[:late] >= DEAF * blame[:weight]
      end

      # Under fair, what is left comes from threads that block too; under the others nobody is let past.
      def remedy(row)
        return "." if little?(row)
        return ". #{UNDER_FAIR}" if fair?
        return ". #{no_policy}" if no_policy

        "; --policy fair would let #{them?(row) ? "those that compute little" : "it"} go first#{many_to_many}."
      end

      def once_heeded(row)
        fair? || little?(row) || no_policy ? "" : " With --policy fair #{them?(row) ? "those that compute little" : "it"} would go #{ONCE_HEEDED}#{many_to_many}."
      end

      def no_policy = Verdict.no_policy(@process[:ready_batch], @process[:ready], @gc_s, @process[:running])

      def many_to_many = (", but not with M:N threads: unset RUBY_MN_THREADS for it" if @many_to_many)

      def little?(row) = waited_share(row) < MUCH || row[:wait][:max] < LONG_S

      def fair? = @stats[:policy] == :fair

      def turns(waiters)
        worst = waiters.max_by { |row| waited_share(row) }
        "Only CPU-bound threads waited, and for one another (#{them?(worst) ? label(worst).downcase : label(worst)}: #{share_of_time(worst)}): " \
          "one GVL is one CPU, so more such threads gain nothing."
      end

      # For whom a thread waited is not known beyond its end.
      def cause(waiter)
        longest = waiter[:waited_for]&.select { |part| part[:name] }&.max_by { |part| part[:seconds] }
        return ", #{longest[:seconds] < CAUSED * waiter[:ready] ? "longest" : "mostly"} for #{share(longest)}" if longest

        others = @threads.reject { |thread| (thread.equal?(waiter) && thread[:count] == 1) || thread[:caused].nil? }
        most = others.max_by { |thread| thread[:caused] }
        return "" unless most && most[:caused] >= [SLIGHT_S, untold_s].max

        # Threads that share a row wait for one another, too.
        whom = most.equal?(waiter) ? "they kept one another and others" : "#{Table.label(most)} kept others"
        "; #{whom} waiting most (#{Text.duration(most[:caused])})"
      end

      def share(part) = "#{Text.thread(part[:name])} (#{Text.duration(part[:seconds])})"

      # Of works the short ones may block and the long ones compute: their threads, which do both, tell more than the sums.
      def cpu_bound?(row)
        return @threads.all? { |thread| thread[:ready] < SLIGHT_S || cpu_bound?(thread) } if them?(row)

        row[:batch] || row[:suspended] < CPU_BOUND * (row[:running] + row[:suspended])
      end

      def waited_share(thread)
        time(thread).zero? ? 0.0 : thread[:ready] / time(thread)
      end

      def share_of_time(row)
        "#{Text.percent(waited_share(row))} of #{them?(row) ? "their" : "its"} time#{" under load" if idle_for_long?(row)}"
      end

      def time(row) = idle_for_long?(row) ? @busy_s : lifetime(row)

      # Not told of several threads in one row, of which we don't know how many there were at a time.
      def idle_for_long?(thread) = thread[:count] == 1 && @busy_s < BUSY * lifetime(thread)

      def lifetime(thread) = thread[:running] + thread[:ready] + thread[:suspended]
    end
  end
end
