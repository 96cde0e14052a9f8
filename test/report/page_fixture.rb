# frozen_string_literal: true

require "json"
require "headway/report"
require "report/leb128"

module Report
  # A page filled with a trace of which every number is known: threads are given as lists of [state, seconds], everything
  # else follows by the plainest arithmetic.
  class PageFixture
    TEMPLATE = File.expand_path("../../lib/headway/report/page.html", __dir__)
    STATES = { running: 0, ready: 1, suspended: 2, absent: 3 }.freeze
    TICKS = 10_000_000 # a second

    attr_reader :data

    def initialize(headline: "A headline", **data)
      @lanes = +"".b
      @data = {
        headway: "0.1.0", schema: 1, headline:, wall_s: 0.0, processes: [], totals: {}, wait_histogram: [], threads: [],
        blame: { samples: 0, weight_s: 0.0, folded: 0, frames: [], stacks: [] }, gc: { count: 0, total_s: 0.0, max_s: 0.0 },
        marks: [], marks_folded: 0, work: [], lanes: [], gc_lanes: [], **data
      }
      @spans = {}
    end

    # @return [Integer] the process's id
    def process(**facts)
      id = data[:processes].size
      data[:processes] << { id:, pid: 100 + id, parent_pid: 1, ruby: "ruby 3.4.11", command: "ruby app.rb", policy: "fair",
                            preempt: "signal", quantum_ms: 100.0, cpus: 2, started_at: "2026-01-02T03:04:05+00:00",
                            start_s: 0.0, end_s: 10.0, events: 100, dropped: 0, folded: 0, unread: 0, damage: nil, **facts }
      id
    end

    # @param segments [Array<Array(Symbol, Numeric)>] state and seconds, in order
    # @return [Integer] the thread's id
    def thread(name, segments, process: 0, start_s: 0.0, site: "app.rb:1", blocked: [])
      id = data[:threads].size
      spans = spans_of(segments, start_s)
      @spans[id] = { process:, spans: }
      seconds = %i[running ready suspended].to_h { |state| [:"#{state}_s", spans.sum { |at, from, to| at == state ? to - from : 0.0 }] }
      data[:threads] << { id:, process:, number: id + 1, name:, site:, start_s:, end_s: spans.last&.last || start_s, **seconds,
                          wait: distribution(lengths(spans, :ready)), hold: distribution(lengths(spans, :running)),
                          switches: { voluntary: spans.count { _1.first == :suspended }, preempted: 0 }, waited_for: [], blocked: }
      lane(:lanes, { thread: id, start_s: }, segments.map { |state, length| [STATES.fetch(state), length] })
      id
    end

    # A lane of which only the bytes matter.
    def raw_thread(name, bytes, segments)
      id = thread(name, [])
      data[:lanes].last.update(segments:, length: bytes.bytesize)
      @lanes << bytes
      id
    end

    def gc(segments, process: 0)
      lane(:gc_lanes, { process:, start_s: 0.0 }, segments)
    end

    # @return [Hash{Integer=>Float}] seconds that each other thread of the process ran between two times
    def holders(id, from, to)
      process = @spans.fetch(id)[:process]
      others = @spans.select { |other, theirs| other != id && theirs[:process] == process }
      others.transform_values { seconds_in(_1[:spans], :running, from, to) }.select { _2 > 0 }
    end

    # @return [Float] seconds that a thread was in a state between two times
    def seconds(id, state, from, to) = seconds_in(@spans.fetch(id)[:spans], state, from, to)

    # @return [Array<Array(Float, Float)>] from when to when a thread waited
    def waits(id) = @spans.fetch(id)[:spans].select { _1.first == :ready }.map { _1.drop(1) }

    # Works out what depends on all threads, then writes the page.
    # @return [String] the page
    def html
      finish
      json = JSON.generate(data).gsub("<", "\\u003c")
      page = File.read(TEMPLATE, encoding: "UTF-8")
      page.sub('"__HEADWAY_DATA__"') { json }.sub("__HEADWAY_LANES__") { [@lanes].pack("m") }
    end

    def write(path) = File.write(path, html).then { path }

    # One segment as the trace's reader codes it.
    def self.segment(state, ticks) = Leb128.leb128((ticks << 2) | state)

    private

    def lane(key, facts, segments)
      exact = time = 0
      bytes = segments.map do |state, seconds|
        exact += seconds * TICKS
        ticks = exact.round - time
        time = exact.round
        self.class.segment(state, ticks)
      end.join
      data[key] << { **facts, segments: segments.size, offset: @lanes.bytesize, length: bytes.bytesize }
      @lanes << bytes
    end

    def spans_of(segments, start)
      time = start
      segments.map { |state, seconds| [state, time, time += seconds] }
    end

    def seconds_in(spans, state, from, to)
      spans.sum { |at, begins, ends| at == state ? [[ends, to].min - [begins, from].max, 0.0].max : 0.0 }
    end

    def lengths(spans, state) = spans.select { _1.first == state }.map { |_, from, to| to - from }

    def distribution(lengths)
      sorted = lengths.sort
      at = ->(share) { sorted.empty? ? 0.0 : sorted[[(share * sorted.size).ceil - 1, 0].max] }
      { count: sorted.size, total_s: sorted.sum(0.0), mean_s: sorted.empty? ? 0.0 : sorted.sum / sorted.size, p50_s: at.(0.5),
        p90_s: at.(0.9), p99_s: at.(0.99), p999_s: at.(0.999), max_s: sorted.last || 0.0 }
    end

    def finish
      threads = data[:threads]
      data[:notes] = Headway::Report::Notes.of(data)
      threads.each { |thread| thread[:waited_for] = waited_for(thread[:id]) }
      waits = @spans.values.flat_map { lengths(_1[:spans], :ready) }
      data[:wall_s] = [data[:wall_s], *threads.map { _1[:end_s] }].max
      data[:wait_histogram] = waits.group_by { |wait| Math.log2(wait).floor }.sort
                                   .map { |power, group| { from_s: 2.0**power, to_s: 2.0**(power + 1), count: group.size } }
      running = threads.sum { _1[:running_s] }
      data[:totals] = { running_s: running, ready_s: threads.sum { _1[:ready_s] }, suspended_s: threads.sum { _1[:suspended_s] },
                        off_cpu_s: 0.5,
                        idle_s: (data[:wall_s] - running).abs, gc_s: data[:gc][:total_s], wait: distribution(waits),
                        hold: distribution([]), switches: { voluntary: 3, preempted: 2 } }
    end

    # The slow, obvious way.
    def waited_for(id)
      waits = @spans.fetch(id)[:spans].select { _1.first == :ready }
      held = waits.each_with_object(Hash.new(0.0)) do |(_, from, to), sums|
        holders(id, from, to).each { |other, s| sums[other] += s }
      end
      rest = waits.sum { |_, from, to| to - from } - held.values.sum
      held[nil] = rest if rest > 1e-9
      held.sort_by { -_2 }.map { |thread, s| { thread:, s: } }
    end
  end
end
