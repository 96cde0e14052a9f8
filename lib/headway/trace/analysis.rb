# frozen_string_literal: true

require_relative "blame"

module Headway
  class Trace
    # Takes what the pass over the files found, in nanoseconds of each process's clock, to seconds since the start of the
    # earliest process. Sums and differences are made of integers, so identities hold up to the last conversion.
    class Analysis
      SCHEMA = 1

      # @return [Array<Integer>] of each process: where the trace's time 0 is on its clock
      attr_reader :origins_ns

      # @param raw [Hash] from Native.analyse
      # @param names [Array<String>] of the files
      def initialize(raw, names)
        @raw = raw
        @names = names
        @processes = raw[:processes]
        start_ns = @processes.map { |process| common(process, process[:start]) }.min
        @origins_ns = @processes.map { |process| start_ns - process[:wall] + process[:clock] }
      end

      def lanes?
        @processes.first.key?(:gc_lane)
      end

      def to_h
        blame = Blame.new(@raw)
        work = work(blame)
        threads = @raw[:threads].each_index.map { |id| thread(id, blame) }
        { headway: @processes.first[:headway], schema: SCHEMA, wall_s: wall_s,
          processes: @processes.each_index.map { |id| process(id) },
          totals: totals, wait_histogram: wait_histogram,
          threads: threads, blame: blame.to_h, gc: gc, marks: marks, marks_folded: @raw[:marks_folded], work: work }
      end

      def lanes
        @raw[:threads].each_with_index.map { |thread, id| { thread: id, **lane(thread[:process], thread[:lane]) } }
      end

      def gc_lanes
        @processes.each_with_index.map { |process, id| { process: id, **lane(id, process[:gc_lane]) } }
      end

      private

      def common(process, time_ns)
        time_ns - process[:clock] + process[:wall]
      end

      def seconds(duration_ns)
        duration_ns.fdiv(1_000_000_000)
      end

      def time(process, time_ns)
        seconds(time_ns - @origins_ns[process])
      end

      def sum(of, key)
        of.sum { |one| one[key] }
      end

      def wall_s
        @processes.each_index.map { |id| time(id, @processes[id][:end]) }.max
      end

      def process(id)
        raw = @processes[id]
        { id: id, file: @names[id], **raw.slice(:pid, :parent_pid, :ruby, :command, :policy, :preempt),
          quantum_ms: raw[:quantum].fdiv(1_000_000), cpus: raw[:cpus], started_at: iso8601(common(raw, raw[:start])),
          start_s: time(id, raw[:start]), end_s: time(id, raw[:end]),
          **raw.slice(:events, :dropped, :folded, :unread), quota: quota(*raw[:quota]), pool: pool(id),
          queued: queued(*raw[:queued]), damage: damage(raw[:damage]) }
      end

      def iso8601(wall_ns)
        Time.at(wall_ns / 1_000_000_000, wall_ns % 1_000_000_000, :nsec).utc.strftime("%Y-%m-%dT%H:%M:%S.%6NZ")
      end

      def quota(periods, exhausted)
        { periods: periods, exhausted: exhausted } if periods.positive?
      end

      # Work that stood in a queue before it began, as far as somebody said so.
      def queued(count, total_ns, max_ns)
        { count: count, total_s: seconds(total_ns), max_s: seconds(max_ns) } if count.positive?
      end

      # The threads that had work (in a server requests, beside which others do jobs), as many as there were of them at a time, and for how
      # long all of them were at it at once.
      def pool(id)
        workers = workers_of(id)
        return if workers.empty?

        threads = most_at_once(workers)
        count, took_ns, times_ns = @processes[id][:at_work]
        { threads: threads, count: count, total_s: seconds(took_ns), work_s: seconds(times_ns.drop(1).sum), full_s: seconds(times_ns[threads] || 0) }
      end

      def workers_of(id)
        @workers ||= @raw[:threads].select { |thread| thread[:of_pool] }.group_by { |thread| thread[:process] }
        @workers.fetch(id, [])
      end

      # Of two at the same time the one that ends goes first.
      def most_at_once(threads)
        count = 0
        threads.flat_map { |thread| [[thread[:start], 1], [thread[:end], -1]] }.sort.map { |_, by| count += by }.max
      end

      def damage(raw)
        raw && { offset: raw[0], what: raw[1] }
      end

      def totals
        threads = @raw[:threads]
        { running_s: seconds(sum(threads, :running)), ready_s: seconds(sum(threads, :ready)),
          suspended_s: seconds(sum(threads, :suspended)), off_cpu_s: seconds(sum(threads, :off_cpu)),
          batch_s: seconds(sum(threads, :batch)), ready_batch_s: seconds(sum(threads, :batch_waits)),
          idle_s: seconds(sum(@processes, :idle)),
          gc_s: seconds(@processes.sum { |process| process[:gc][1] }), wait: durations(@raw[:wait]), hold: durations(@raw[:hold]),
          switches: { voluntary: sum(threads, :voluntary), preempted: sum(threads, :preempted) }, since_work: since_work }
      end

      # Of the processes that did any.
      def since_work
        raw = @processes.filter_map { |process| process[:since_work] }
        return if raw.empty?

        wall_ns, running_ns, off_cpu_ns, gc_count, gc_ns = raw.transpose.map(&:sum)
        { wall_s: seconds(wall_ns), running_s: seconds(running_ns), off_cpu_s: seconds(off_cpu_ns), gc_count: gc_count, gc_s: seconds(gc_ns) }
      end

      def durations(raw)
        count, total, p50, p90, p99, p999, max = raw
        { count: count, total_s: seconds(total), mean_s: count.zero? ? 0.0 : seconds(total) / count,
          p50_s: seconds(p50), p90_s: seconds(p90), p99_s: seconds(p99), p999_s: seconds(p999), max_s: seconds(max) }
      end

      def wait_histogram
        bounds = Native::WAIT_BUCKETS_NS
        @raw[:wait_buckets].each_with_index.filter_map do |count, bucket|
          next if count.zero?

          to_ns = bounds[bucket + 1] || @raw[:wait].last + 1
          { from_s: seconds(bounds[bucket]), to_s: seconds(to_ns), count: count }
        end
      end

      def thread(id, blame)
        raw = @raw[:threads][id]
        process = raw[:process]
        { id: id, process: process, number: raw[:number], name: raw[:name], site: raw[:site],
          start_s: time(process, raw[:start]), end_s: time(process, raw[:end]),
          running_s: seconds(raw[:running]), ready_s: seconds(raw[:ready]), suspended_s: seconds(raw[:suspended]),
          off_cpu_s: seconds(raw[:off_cpu]), batch_s: seconds(raw[:batch]),
          wait: durations(raw[:wait]), hold: durations(raw[:hold]), switches: raw.slice(:voluntary, :preempted),
          waited_for: waited_for(raw), boot: boot(raw), blocked: blame.places(raw[:blocked]).first(MOST_BLOCKED) }
      end

      def waited_for(raw)
        sums = (raw[:waited_for] + raw[:waited_for_at_boot]).each_with_object(Hash.new(0)) { |(holder, ns), all| all[holder] += ns }
        rows = holders(sums)
        rows << { thread: nil, others: true, s: seconds(raw[:unassigned]) } if raw[:unassigned].positive?
        rows
      end

      def holders(pairs)
        pairs.sort_by { |holder, ns| [-ns, holder || Float::INFINITY] }.map { |holder, ns| { thread: holder, s: seconds(ns) } }
      end

      def boot(raw)
        return if raw[:boot].sum.zero?

        { **%i[running_s ready_s suspended_s ready_batch_s].zip(raw[:boot].map { |ns| seconds(ns) }).to_h, waited_for: holders(raw[:waited_for_at_boot]) }
      end

      def gc
        raw = @processes.map { |process| process[:gc] }
        { count: raw.sum { |count,| count }, total_s: seconds(raw.sum { |_, total| total }), max_s: seconds(raw.map(&:last).max) }
      end

      def marks
        @raw[:marks].map do |thread, name, start_ns, end_ns|
          process = @raw[:threads][thread][:process]
          { thread: thread, name: name, start_s: time(process, start_ns), end_s: end_ns && time(process, end_ns) }
        end
      end

      # Stacks of one name of work, or of a thread, in which it was blocked: the rest is little, and each has dozens of frames. Those in
      # which it is blamed, which its threads have anyway, are all there: of each line it is asked how much of its weight is that work's.
      MOST_BLOCKED = 50
      private_constant :MOST_BLOCKED

      # The same name in several processes is one.
      def work(blame)
        rows = @raw[:work].group_by(&:first).map do |name, all|
          blocked, blamed = [-2, -1].map { |list| blame.places(all.flat_map { |one| one[list] }) }
          longest = all.filter_map { |one| one[-3] }.max_by { |_, _, _, _, ready,| ready }
          count, *times = all.map { |_, _, *figures, _, _, _| figures }.transpose.map(&:sum)
          { name: name, kind: all.filter_map { |_, kind,| kind }.first, count: count,
            **%i[total_s running_s ready_s computed_s blamed_s].zip(times.map { |ns| seconds(ns) }).to_h,
            longest: longest && single(blame, *longest), blocked: blocked.first(MOST_BLOCKED), blamed: blamed }
        end
        rows.sort_by { |row| [-row[:ready_s], -row[:total_s], row[:name]] }
      end

      # The one of its name that waited longest.
      def single(blame, thread, start_ns, *times, behind)
        { thread: thread, start_s: time(@raw[:threads][thread][:process], start_ns),
          **%i[total_s running_s ready_s].zip(times.map { |ns| seconds(ns) }).to_h, behind: blame.places(behind) }
      end

      def lane(process, raw)
        start_ns, segments, bytes = raw
        { start_s: time(process, start_ns), segments: segments, bytes: bytes }
      end
    end
    private_constant :Analysis
  end
end
