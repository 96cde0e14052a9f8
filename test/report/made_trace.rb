# frozen_string_literal: true

require "report/leb128"

# A trace made by hand: what Headway::Trace answers, worked out the slow obvious way from each thread's segments.
class MadeTrace
  include Leb128

  TICK_S = 1e-7
  STATES = { running: 0, ready: 1, suspended: 2, absent: 3 }.freeze

  # @param processes [Array<Hash>] pid:, and what differs from the usual
  # @param threads [Array<Hash>] name:, segments: [[state, seconds] …], process: 0, start_s: 0.0, site: "", boot: nil, blocked: []
  # @param off_cpu_s [Float] of all threads
  # @param since_work [Hash, nil] of its totals
  # @param gc [Array<Array(Integer, Float, Float)>] process, from, to
  def initialize(threads:, processes: [{ pid: 4242 }], gc: [], marks: [], stacks: [], frames: [], off_cpu_s: 0.0, since_work: nil, **others)
    @threads = threads.map.with_index { |thread, id| { id: id, process: 0, start_s: 0.0, site: "", number: id + 1, **thread } }
    @processes = processes
    @gc = gc
    @marks = marks
    @stacks = stacks.map { |stack| { late_s: 0.0, **stack } }
    @frames = frames
    @off_cpu_s = off_cpu_s
    @since_work = since_work
    @others = others
  end

  # @return [Integer] how often the analysis was asked for
  attr_reader :analyses

  def to_h
    @analyses = @analyses.to_i + 1
    threads = @threads.map { |thread| row(thread) }
    wall_s = threads.map { |thread| thread[:end_s] }.max || 0.0
    {
      headway: "0.1.0", schema: 1, wall_s: wall_s, processes: @processes.map.with_index { |one, id| process(one, id, wall_s) },
      totals: totals(threads, wall_s), wait_histogram: histogram, threads: threads,
      blame: { samples: @stacks.sum { |stack| stack[:samples] }, weight_s: @stacks.sum(0.0) { |stack| stack[:weight_s] },
               folded: 0, frames: @frames, stacks: @stacks },
      gc: { count: @gc.size, total_s: gc_s, max_s: @gc.map { |_, from, to| to - from }.max || 0.0 },
      marks: @marks, marks_folded: 0, work: []
    }.merge(@others).tap { |data| data[:work] = data[:work].map { |kind| { blocked: [], blamed: [], longest: nil, **kind } } }
  end

  def lanes
    @threads.map do |thread|
      pairs = thread[:segments].map { |state, seconds| [STATES.fetch(state), seconds] }
      { thread: thread[:id], start_s: thread[:start_s], segments: pairs.size, bytes: encode(pairs, thread[:start_s]) }
    end
  end

  def gc_lanes
    @gc.group_by(&:first).map do |process, runs|
      at = 0.0
      pairs = runs.flat_map do |_, from, to|
        gap = from - at
        at = to
        [[0, gap], [1, to - from]]
      end
      { process: process, start_s: 0.0, segments: pairs.size, bytes: encode(pairs, 0.0) }
    end
  end

  # @return [Array<Array(Float, Float, Symbol)>]
  def spans(thread)
    at = thread[:start_s]
    thread[:segments].map { |state, seconds| [at, at += seconds, state] }
  end

  private

  def process(given, id, wall_s)
    { id: id, pid: 4242, parent_pid: 1, ruby: "3.4.1", command: "ruby app.rb", policy: "observe", preempt: "signal",
      quantum_ms: 100.0, cpus: 2, started_at: "2026-01-02T03:04:05.678Z", start_s: 0.0, end_s: wall_s, events: 12,
      dropped: 0, folded: 0, quota: nil, pool: nil, queued: nil, damage: nil }.merge(given)
  end

  def row(thread)
    times = STATES.keys.to_h { |state| [state, time_in(thread, state)] }
    { **thread.slice(:id, :process, :number, :name, :site, :start_s), end_s: spans(thread).last&.at(1) || thread[:start_s],
      running_s: times[:running], ready_s: times[:ready], suspended_s: times[:suspended],
      wait: spread(lengths(thread, :ready)), hold: spread(lengths(thread, :running)),
      switches: { voluntary: 1, preempted: 0 }, waited_for: waited_for(thread), boot: thread[:boot], blocked: thread.fetch(:blocked, []) }
  end

  def totals(threads, wall_s)
    running_s, ready_s, suspended_s = %i[running_s ready_s suspended_s].map { |key| threads.sum(0.0) { |row| row[key] } }
    batch = @threads.flat_map { |thread| spans(thread).select { |from, to, state| state == :running && to - from > 0.005 } }
    { running_s: running_s, ready_s: ready_s, suspended_s: suspended_s, off_cpu_s: @off_cpu_s, batch_s: batch.sum(0.0) { |from, to,| to - from - 0.005 },
      ready_batch_s: batch.sum(0.0) { |from, to,| @threads.sum(0.0) { |thread| overlap(thread, from + 0.005, to, :ready) } }, since_work: @since_work,
      idle_s: [wall_s * @processes.size - running_s, 0.0].max,
      gc_s: gc_s, wait: spread(@threads.flat_map { |thread| lengths(thread, :ready) }),
      hold: spread(@threads.flat_map { |thread| lengths(thread, :running) }),
      switches: { voluntary: threads.size, preempted: 0 } }
  end

  # Buckets of a factor of ten.
  def histogram
    waits = @threads.flat_map { |thread| lengths(thread, :ready) }.select(&:positive?)
    waits.group_by { |wait| Math.log10(wait).floor }.sort.map do |power, same|
      { from_s: 10.0**power, to_s: 10.0**(power + 1), count: same.size }
    end
  end

  def gc_s = @gc.sum(0.0) { |_, from, to| to - from }

  def time_in(thread, state) = lengths(thread, state).sum(0.0)

  def lengths(thread, state) = thread[:segments].filter_map { |one, seconds| seconds if one == state }

  def spread(lengths)
    return { count: 0, total_s: 0.0, mean_s: 0.0, p50_s: 0.0, p90_s: 0.0, p99_s: 0.0, p999_s: 0.0, max_s: 0.0 } if lengths.empty?

    sorted = lengths.sort
    at = ->(share) { sorted[(share * (sorted.size - 1)).ceil] }
    { count: sorted.size, total_s: sorted.sum, mean_s: sorted.sum / sorted.size, p50_s: at[0.5], p90_s: at[0.9],
      p99_s: at[0.99], p999_s: at[0.999], max_s: sorted.last }
  end

  def waited_for(thread)
    waits = spans(thread).select { |_, _, state| state == :ready }
    rivals = @threads.select { |one| one[:process] == thread[:process] }
    held = rivals.to_h { |one| [one[:id], waits.sum(0.0) { |from, to,| overlap(one, from, to) }] }
    held[nil] = waits.sum(0.0) { |from, to,| to - from } - held.values.sum
    held.select { |_, seconds| seconds > 1e-9 }.sort_by { |_, seconds| -seconds }.map { |id, seconds| { thread: id, s: seconds } }
  end

  def overlap(thread, from, to, state = :running)
    spans(thread).select { |_, _, one| one == state }
                 .sum(0.0) { |start, finish,| [[finish, to].min - [start, from].max, 0.0].max }
  end

  def encode(pairs, start_s)
    at = start_s
    pairs.map do |state, seconds|
      from = (at / TICK_S).round
      leb128(((((at += seconds) / TICK_S).round - from) << 2) | state)
    end.join.b
  end
end

# Traces that several tests look at.
module MadeTraces
  # A kind of work that hardly needs the GVL, and what is said of it where nobody knows more.
  ELSEWHERE = "neither running nor waiting for the GVL, which no policy changes: I/O, sleep, a lock, a wait for a connection, or native code " \
              "without the GVL."
  SLOW = { name: "GET /slow", count: 40, total_s: 20.0, running_s: 0.5, ready_s: 0.1, computed_s: 0.0, blamed_s: 0.0 }.freeze

  # Light requests that wait for the heavy ones, and what would help them.
  WORK = [{ name: "GET /", count: 900, total_s: 10.0, running_s: 0.5, ready_s: 6.0, computed_s: 0.0, blamed_s: 0.1 },
          { name: "GET /report", count: 20, total_s: 8.0, running_s: 6.0, ready_s: 1.0, computed_s: 0.0, blamed_s: 0.9,
            blamed: [{ frames: [3, 0, 1, 2], s: 0.88 }, { frames: [4, 2], s: 0.02 }] }].freeze
  FAIR = "With policy fair it would go first: `headway run --policy fair -- ruby app.rb`."

  FRAMES = [{ method: "Report#render", file: "app/report.rb", line: 12 },
            { method: "block in Report#page", file: "app/report.rb", line: 40 },
            { method: "<main>", file: "app.rb", line: 3 },
            { method: "Array#each", file: "<internal:array>", line: 42 },
            { method: "Totals.add", file: "app/totals.rb", line: 7 }].freeze

  module_function

  def headline(trace) = Headway::Report::Headline.of(trace.to_h)

  # worker-3 waits twice for crunch (0.9 s and 0.1 s) and once for main.
  def stalled(**more)
    MadeTrace.new(
      threads: [
        { name: "main", segments: [[:running, 0.5], [:suspended, 2.0]] },
        { name: "crunch", site: "app.rb:9", segments: [[:ready, 0.5], [:running, 1.4], [:ready, 0.1], [:running, 0.5]] },
        { name: "worker-3", site: "app.rb:20",
          segments: [[:absent, 0.4], [:ready, 0.1], [:suspended, 0.4], [:ready, 1.0], [:running, 0.1], [:suspended, 0.5]] }
      ],
      frames: FRAMES,
      stacks: [{ thread: 1, frames: [3, 0, 1, 2], weight_s: 0.9, samples: 9 }, { thread: 1, frames: [4, 2], weight_s: 0.1, samples: 1 }],
      gc: [[0, 0.6, 0.61], [0, 1.0, 1.02]],
      marks: [{ thread: 2, name: "request", start_s: 0.9, end_s: 2.2 }, { thread: 2, name: "render", start_s: 1.9, end_s: 2.0 },
              { thread: 2, name: "crossing", start_s: 2.1, end_s: 2.4 }, { thread: 2, name: "paid", start_s: 2.05, end_s: nil }],
      **more
    )
  end

  def empty = MadeTrace.new(threads: [])

  def single(**more)
    MadeTrace.new(threads: [{ name: "main", segments: [[:running, 2.0], [:suspended, 0.5]] }], **more)
  end

  # As Unicorn's master and its worker.
  def single_threaded
    threads = [0, 1].map { |process| { name: "main", process: process, segments: [[:running, 1.0], [:ready, 0.00001], [:running, 1.0]] } }
    MadeTrace.new(processes: [{ pid: 100 }, { pid: 200 }], threads: threads)
  end

  def idle
    MadeTrace.new(threads: [{ name: "main", segments: [[:running, 0.001], [:suspended, 9.0]] },
                            { name: "pool", segments: [[:suspended, 9.001]] }])
  end

  def two_processes
    MadeTrace.new(
      processes: [{ pid: 100 }, { pid: 200, start_s: 1.0 }],
      threads: [{ name: "main", segments: [[:running, 1.0], [:suspended, 1.0]] },
                { name: "worker", segments: [[:ready, 1.0], [:running, 0.5], [:suspended, 0.5]] },
                { name: "main", process: 1, start_s: 1.0, number: 1, segments: [[:running, 1.0]] }]
    )
  end
end
