# frozen_string_literal: true

require_relative "base"
require_relative "summary"
require_relative "trace"

module Headway
  # What a program's threads did in a trace, without the waits for the GVL: bursts that need it, CPU time without it, and delays.
  # Requests are what was marked (each {Work} is, and Headway.mark does it: the outermost mark of a thread), a class for each name. So are
  # jobs, but not in a process that serves requests: there they go on beside them.
  # Without marks it is the threads themselves, whose cycles (a burst and the delay after it) count as requests.
  #
  #   Headway::Workload.open("out.headway").simulate(threads: 8, policy: :fair)
  class Workload
    # One class of requests as recorded; times in seconds, means but for the percentiles.
    Kind = Data.define(:name, :index, :count, :gvl_s, :cpu_s, :delay_s, :wait_s, :mean_s, :p50_s, :p95_s, :p99_s)

    POLICIES = { fair: 0, quantum: 1, stock: 2 }.freeze
    # Where the trace can't tell how long a hand-over of the GVL takes: what it took where it was measured.
    HANDOVER_NS = 10_000
    DEFAULTS = { processes: 1, threads: 1, cores: nil, policy: :stock, quantum_ms: Settings::VM_SLICE_MS, rate: nil, requests: 10_000,
                 warm_up: nil, seed: 1, resample: false, longest_s: 3_600 }.freeze
    # Of the requests: with so many what is known of them is taken for all.
    NEARLY_ALL = 0.9
    private_constant :HANDOVER_NS, :DEFAULTS, :NEARLY_ALL
    # That can be simulated, of all processes, those beside requests too.
    THREADS_MOST = Headway.supported? ? Native::Workload::THREADS_MOST : 0

    # @param paths [Array<String>] trace files, one per process
    # @return [Workload]
    # @raise [ArgumentError] no file is given
    # @raise [Trace::Error] nothing of a file can be read, or nothing of it can be simulated
    def self.open(*paths)
      raise ArgumentError, "no trace file given" if paths.empty?
      raise Trace::Error, "traces can't be read here: #{Headway.unsupported_reason}" unless Headway.supported?

      sizes = paths.map { |path| Native::Traces.check(path).then { |size| size.is_a?(Array) ? refuse(path, size) : size } }
      native = Native::Workload.read(paths.zip(sizes))
      refuse(paths.fetch(native.first, paths.first), native) if native.is_a?(Array)
      new(native, paths)
    end

    def self.refuse(path, answer)
      raise Trace::Error, "#{path}: #{answer.last.empty? ? "not enough memory" : answer.last}"
    end
    private_class_method :new, :refuse

    # @return [Array<String>] the trace's files
    attr_reader :paths

    # @return [Hash] all that was read, times in nanoseconds
    attr_reader :facts

    # @return [Array<Kind>] those that occurred, most time first
    attr_reader :kinds

    # @api private
    def initialize(native, paths)
      @native = native
      @paths = paths
      @facts = native.facts
      @kinds = @facts[:classes].each_with_index.filter_map { |raw, index| kind(raw, index) }
      @kinds.select! { |kind| request_classes.include?(kind.index) }
      @kinds.sort_by! { |kind| [-kind.count * kind.mean_s, kind.index] }
    end

    # @return [Boolean] whether the program marked its requests
    def marked? = @facts[:marked].positive?

    # @return [Boolean] whether those are jobs
    def jobs? = marked? && typical_process[:jobs] > 0.5 * typical_process[:requests]

    # @param process [Hash] one of {#processes}
    # @return [Boolean]
    def sidekiq?(process) = process[:command].match?(/\bsidekiq\b/i)

    # @return [String] what one of those counted is called
    def thing
      return "burst" unless marked?

      jobs? ? "job" : "request"
    end

    # @return [String] and several
    def things = "#{thing}s"

    # @return [Integer] of the machine that recorded
    def cores = [typical_process[:cpus], 1].max

    # @return [Integer] recorded requests, or cycles
    def count = kinds.sum(&:count)

    # @return [Hash{Symbol => Float}] of all of those: mean_s, p50_s, p95_s and p99_s, as recorded
    def latency = figures(@facts[:latency])

    # @return [Hash] of the process with the most requests
    def typical_process = @facts[:processes][@facts[:typical_process]]

    # @return [Array<Hash>] processes that did requests; without marks those that didn't only wait
    def processes
      @processes ||=
        if marked? then @facts[:processes].select { |process| process[:requests].positive? }
        elsif @facts[:tracks].empty? then @facts[:processes]
        else @facts[:processes].values_at(*@facts[:tracks].map { |track| track[:process] }.uniq)
        end
    end

    # @return [Integer] threads in each process that did them
    def threads
      marked? ? processes.map { |process| process[:workers] }.max : [tracks_of(@facts[:typical_process]), 1].max
    end

    # @return [Integer] threads that go on beside requests, in each process
    def threads_beside = marked? ? tracks_of(@facts[:typical_process]) : 0

    # @return [Float] bursts of those a second, in each process
    def beside_per_s
      return 0.0 unless marked?

      cycles = @facts[:tracks].sum { |track| track[:process] == @facts[:typical_process] ? track[:cycles] : 0 }
      cycles / ([typical_process[:wall], 1].max / 1e9)
    end

    # @return [Integer] threads of the same pools that did none, in all processes
    def idle_threads = processes.sum { |process| process[:idle] }

    # @return [Integer] requests that were under way at a time, in one process
    def most_at_once = marked? ? processes.map { |process| process[:most_at_once] }.max : threads

    # Workers that are ended and replaced, as by a phased restart, are one after the other what one was.
    #
    # @return [Integer] processes that did requests, as many as there were at a time
    def processes_at_once
      running = 0
      changes = processes.flat_map { |process| [[process[:start], -1], [process[:start] + process[:wall], 1]] }
      changes.sort.map { |_, fewer| running -= fewer }.max # who begins as another one ends is beside it
    end

    # @return [Float] requests a second, over all processes; those too that hadn't ended as the trace did
    def rate
      seconds = covered / 1e9
      seconds.zero? ? 0.0 : (count + processes.sum { |process| process[:under_way] }) / seconds
    end

    # @return [Float] the share of their time in which the threads had a request, 0 to 1
    def busy
      return 1.0 unless marked?

      available = processes.sum { |process| process[:workers] * process[:requests_span].to_f }
      available.zero? ? 0.0 : processes.sum { |process| process[:busy] } / available
    end

    # @return [Float, nil] seconds that a request stood in a queue before a thread took it, on average; nil: that isn't told of nearly all
    def queued_s
      told, total_ns = @facts[:queued]
      total_ns.fdiv(told) / 1e9 if marked? && told >= NEARLY_ALL * count
    end

    # @return [Hash] as recorded: processes:, threads:, policy:, quantum_ms:
    def setting
      policy = POLICIES.keys.find { |known| known.to_s == typical_process[:policy] } || :stock # observe, for one
      quantum_ms = typical_process[:quantum] / 1e6
      { processes: processes_at_once, threads: threads, policy: policy, quantum_ms: quantum_ms.zero? ? Settings::VM_SLICE_MS : quantum_ms }
    end

    # @param settings [Hash] of the simulation: processes:, threads: (of each process), cores: (default: as recorded), policy: (:stock,
    #   :quantum or :fair), quantum_ms:, rate: (arrivals a second; nil: each thread takes the next request at once), requests: (to be
    #   measured), warm_up:, seed:, resample: (draw from a bootstrap sample of the requests), longest_s: (simulated time)
    # @return [Hash] as Native::Workload#simulate gives it, times in nanoseconds
    # @raise [ArgumentError] more than {THREADS_MOST} threads
    def simulate(**settings)
      unknown = settings.keys - DEFAULTS.keys
      raise ArgumentError, "unknown setting #{unknown.first}" unless unknown.empty?

      @native.simulate(native_settings(DEFAULTS.merge(settings))) ||
        raise(ArgumentError, "nothing to simulate, or more than #{THREADS_MOST} threads")
    end

    private

    def native_settings(set)
      quantum_ns = (set[:quantum_ms] * 1_000_000).round
      vm_slice_ns = set[:policy] == :stock ? quantum_ns : [quantum_ns, Settings::VM_SLICE_MS * 1_000_000].max
      set.slice(:processes, :threads, :seed, :resample, :requests).merge(
        cores: set[:cores] || cores, policy: POLICIES.fetch(set[:policy]),
        quantum_ns: quantum_ns, vm_slice_ns: vm_slice_ns, handover_ns: HANDOVER_NS, rate_per_s: set[:rate].to_f,
        warm_up: set[:warm_up] || [set[:requests] / 10, set[:processes] * set[:threads]].max,
        longest_ns: (set[:longest_s] * 1_000_000_000).round
      )
    end

    # What goes on beside requests is no class of theirs.
    def request_classes
      @request_classes ||=
        if marked?
          beside = @facts[:tracks].map { |track| track[:class] }
          @facts[:classes].each_index.select { |index| !beside.include?(index) }
        else
          @facts[:classes].each_index.to_a
        end
    end

    # Nanoseconds in which one process at least did requests.
    def covered
      til = 0
      spans = processes.map { |process| process.values_at(*(marked? ? %i[requests_start requests_span] : %i[start wall])) }
      spans.sort.sum { |start, span| [start + span - [start, til].max, 0].max.tap { til = [til, start + span].max } }
    end

    def tracks_of(process) = @facts[:tracks].count { |track| track[:process] == process }

    def kind(raw, index)
      count = raw[:count]
      return if count.zero?

      mean = ->(key) { raw[key].fdiv(count) / 1e9 }
      Kind.new(name: Summary::Text.plain(raw[:name]), index:, count:, gvl_s: mean[:gvl], cpu_s: mean[:cpu], delay_s: mean[:delay],
               wait_s: mean[:wait], **figures(raw[:latency]))
    end

    def figures(latency)
      count, total, *percentiles = latency
      p50, p95, p99 = percentiles.map { |ns| ns / 1e9 }
      { mean_s: total.fdiv(count) / 1e9, p50_s: p50, p95_s: p95, p99_s: p99 }
    end
  end
end
