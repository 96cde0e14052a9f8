# frozen_string_literal: true

require_relative "trace_case"
require "report/leb128"

class TraceTest < TraceCase
  def durations(*seconds, **others)
    { count: seconds.size, total_s: seconds.sum.round(9), mean_s: seconds.sum.round(9) / seconds.size, p50_s: seconds.first,
      p90_s: seconds.last, p99_s: seconds.last, p999_s: seconds.last, max_s: seconds.last, **others }
  end

  def test_what_the_known_trace_says
    known = trace_of(known_trace).to_h

    assert_equal %i[headway schema wall_s processes totals wait_histogram threads blame gc marks marks_folded work], known.keys
    assert_equal ["0.1.0", 1, 0.1], known.values_at(:headway, :schema, :wall_s)
    assert_equal [{ id: 0, file: "trace0.headway", pid: 4242, parent_pid: 1, ruby: "3.4.7", command: "ruby server.rb", policy: "fair", preempt: "signal",
                    quantum_ms: 100.0, cpus: 2, started_at: "2023-11-14T22:13:20.000000Z", start_s: 0.0, end_s: 0.1,
                    events: 15, dropped: 5, folded: 2, unread: 0, quota: nil, pool: { threads: 1, count: 1, total_s: 0.065, work_s: 0.065, full_s: 0.065 }, queued: nil, damage: nil }], known[:processes]
    assert_equal({ running_s: 0.098, ready_s: 0.053, suspended_s: 0.029, off_cpu_s: 0.0, batch_s: 0.088, ready_batch_s: 0.045, idle_s: 0.002, gc_s: 0.002,
                   wait: durations(0.012, 0.041, p50_s: 0.012001279), hold: durations(0.01, 0.06, p50_s: 0.010002431),
                   switches: { voluntary: 1, preempted: 1 },
                   since_work: { wall_s: 0.09, running_s: 0.088, off_cpu_s: 0.0, gc_count: 1, gc_s: 0.002 } }, known[:totals])
    assert_equal [{ from_s: 0.01, to_s: 0.015, count: 1 }, { from_s: 0.03, to_s: 0.05, count: 1 }], known[:wait_histogram]
    assert_equal({ count: 1, total_s: 0.002, max_s: 0.002 }, known[:gc])
  end

  def test_the_known_traces_threads
    main, worker = trace_of(known_trace).to_h[:threads]

    assert_equal({ id: 0, process: 0, number: 1, name: "main", site: "", start_s: 0.0, end_s: 0.1, running_s: 0.088,
                   ready_s: 0.012, suspended_s: 0.0, off_cpu_s: 0.0, batch_s: 0.083, wait: durations(0.012), hold: durations(0.06),
                   switches: { voluntary: 0, preempted: 1 },
                   waited_for: [{ thread: 1, s: 0.01 }, { thread: nil, s: 0.002 }], boot: nil, blocked: [] }, main)
    assert_equal({ id: 1, process: 0, number: 2, name: "worker", site: "pool.rb:12", start_s: 0.0, end_s: 0.08,
                   running_s: 0.01, ready_s: 0.041, suspended_s: 0.029, off_cpu_s: 0.0, batch_s: 0.005, wait: durations(0.041), hold: durations(0.01),
                   switches: { voluntary: 1, preempted: 0 },
                   waited_for: [{ thread: 0, s: 0.04 }, { thread: nil, s: 0.001 }], boot: nil, blocked: [] }, worker)
  end

  def test_the_known_traces_blame_and_marks
    trace = trace_of(known_trace)
    known = trace.to_h

    assert_equal({ samples: 1, weight_s: 0.03, folded: 2,
                   frames: [{ method: "Array#each", file: "", line: 0 },
                            { method: "Report#render", file: "app/report.rb", line: 17 }],
                   stacks: [{ thread: 0, frames: [0, 1], weight_s: 0.03, samples: 1, late_s: 0.0 }] }, known[:blame])
    assert_equal [{ thread: 1, name: "request", start_s: 0.01, end_s: 0.075 },
                  { thread: 1, name: "request", start_s: 0.068, end_s: nil }], known[:marks]
    assert_equal [["Array#each", "", 0], ["Report#render", "app/report.rb", 17]], trace.stack(0, 1)
    assert_equal [], trace.stack(0, 99)
  end

  def segments(lane)
    values = Leb128.numbers(lane[:bytes]).map { |number| [number >> 2, number & 3] }
    assert_equal lane[:segments], values.size
    values
  end

  def test_lanes_of_the_known_trace
    trace = trace_of(known_trace)
    main, worker = trace.lanes

    assert_equal [0, 0.0, 1, 0.0], [main[:thread], main[:start_s], worker[:thread], worker[:start_s]]
    assert_equal [[600_000, 0], [120_000, 1], [280_000, 0]], segments(main)
    assert_equal [[200_000, 2], [410_000, 1], [100_000, 0], [90_000, 2]], segments(worker)
    assert_equal [0], trace.gc_lanes.map { |lane| lane[:process] }
    assert_equal [[640_000, 0], [20_000, 1], [340_000, 0]], segments(trace.gc_lanes.first)
  end

  def test_lanes_round_boundaries_and_not_durations
    encoder = TraceEncoder.new(clock_ns: 0, wall_ns: 1_000_000_030)
    events = (1..1000).flat_map { |turn| [[turn * 240, 1, :resumed], [turn * 240 + 133, 1, :suspended]] }
    lane = trace_of(encoder.events(*events).end).lanes.first
    units = segments(lane).sum(&:first)

    assert_equal ((1000 * 240 + 133 + 30) / 100.0).round - ((240 + 30) / 100.0).round, units
    assert_in_delta 30e-9, lane[:start_s], 1e-15, "the start is 1 s + 270 ns, the boundary 1 s + 300 ns"
  end

  def test_lanes_after_the_analysis_see_the_same_threads_though_the_file_grew
    path = file(TraceEncoder.new.events([ms(1), 1, :resumed], [ms(2), 1, :suspended]))
    trace = Headway::Trace.open(path)
    threads = trace.to_h[:threads]
    File.binwrite(path, TraceEncoder.new.events([ms(3), 2, :resumed]).bytes, mode: "ab")

    assert_equal threads.map { |thread| thread[:id] }, trace.lanes.map { |lane| lane[:thread] }
  end

  def test_events_of_the_known_trace
    events = trace_of(known_trace).events

    assert_equal 15, events.count
    assert_equal [[0, 0.0, 1, :known, 2], [0, 0.0, 2, :known, 0], [0, 0.01, 2, :mark_begin, "request"], [0, 0.02, 2, :ready, 0],
                  [0, 0.05, 1, :blame, 1], [0, 0.06, 1, :preempted, 0]], events.first(6)
    assert_equal [0, 0.1, 1, :known, 2], events.to_a.last
  end

  def test_a_file_that_has_gone_meanwhile
    path = file(known_trace)
    trace = Headway::Trace.open(path)
    trace.to_h
    File.delete(path)

    [-> { trace.events.first }, -> { trace.stack(0, 1) }].each do |reading|
      assert_match(/trace.headway: /, assert_raises(Headway::Trace::Error, &reading).message)
    end
    assert_raises(IOError) { trace_of(known_trace).events.each { raise IOError, "the program's own" } }
  end

  # A block of it takes some seconds, as each sample is weighed by all that wait.
  def test_reading_ends_soon_however_many_wait
    waiting = Array.new(30_000) { |i| [ms(0), i + 2, :ready] }
    blamed = Array.new(60_000) { |i| [ms(1) + i, 1, :blame, 1] }
    trace = trace_of(TraceEncoder.new.stacks(1 => [1]).events(*waiting, [ms(1), 1, :resumed]).events(*blamed).end)
    reader = Thread.new { trace.to_h }
    reader.report_on_exception = false
    reader.join(0.3)
    began = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    reader.kill.join

    assert_operator Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - began, :<, 0.5
    assert_nil reader.value
  end

  def test_names_of_a_big_file_are_read_though_one_is_interrupted
    encoder = TraceEncoder.new
    200.times { |block| encoder.events(*Array.new(2000) { |turn| [ms(block * 2000 + turn), 1, :ready] }) }
    encoder.events([ms(400_000), 1, :mark, 1]).strings(1 => "late") # behind all that is read until an interrupt
    trace = trace_of(encoder.end)
    trace.to_h
    reader = Thread.new { trace.events.reduce(nil) { |_, event| event }.last }
    interrupts = 0
    while reader.alive?
      begin
        reader.stop? && reader.wakeup && interrupts += 1
      rescue ThreadError
        nil # it has ended
      end
      Thread.pass
    end

    assert_operator interrupts, :>, 0
    assert_equal "late", reader.value
  end

  # A request that renders in more stacks than there are places where it could have been blocked.
  def test_work_is_blamed_in_all_its_stacks
    stacks = 1..80
    encoder = TraceEncoder.new.strings(1 => "GET /", 2 => "Page#render", 3 => "page.rb")
    encoder.frames(stacks.to_h { |line| [line, [2, 3, line]] }).stacks(stacks.to_h { |stack| [stack, [stack]] })
    encoder.events([ms(0), 1, :resumed], [ms(0), 1, :mark_begin, 1], [ms(0), 2, :ready],
                   *stacks.map { |stack| [ms(10 * stack), 1, :blame, stack] }, [ms(800), 1, :mark_end, 1], [ms(800), 1, :suspended])
    trace = trace_of(encoder.end).to_h

    assert_equal trace[:blame][:stacks].map { |stack| [stack[:frames], stack[:weight_s]] }, trace[:work].first[:blamed].map(&:values)
    assert_in_delta 0.8, trace[:work].first[:blamed].sum { |stack| stack[:s] }
  end

  # It is renamed as it ends; of two processes it is the one's that waited longer.
  def test_the_work_that_waited_longest
    strings = { 1 => "request", 2 => "GET /", 3 => "Page#render", 4 => "page.rb" }
    shorter, longer = [9, 30].map do |wait_ms|
      encoder = TraceEncoder.new(pid: wait_ms, clock_ns: 0, wall_ns: 1_700_000_000_000_000_000).strings(strings).frames(1 => [3, 4, 5]).stacks(1 => [1])
      encoder.events([ms(0), 1, :resumed], [ms(5), 1, :mark_begin, 1], [ms(10), 1, :preempted], [ms(10), 2, :resumed], [ms(10 + wait_ms), 2, :blame, 1],
                     [ms(50), 2, :suspended], [ms(51), 1, :resumed], [ms(60 - wait_ms / 10), 1, :mark_end, 1], [ms(60), 1, :mark_name, 2], [ms(60), 1, :suspended]).end
    end
    trace = trace_of(shorter, longer).to_h
    work = trace[:work].first

    assert_equal ["GET /", 2], work.values_at(:name, :count)
    assert_equal [9, 0.005, 0.055, 0.014, 0.041, [0.009]], [trace[:processes][trace[:threads][work[:longest][:thread]][:process]][:pid],
                  *work[:longest].values_at(:start_s, :total_s, :running_s, :ready_s), work[:longest][:behind].map { |stack| stack[:s] }]
    assert_equal "Page#render", trace[:blame][:frames][work[:longest][:behind].first[:frames].first][:method]
  end

  def test_files_merge_on_the_common_clock
    parent = TraceEncoder.new(pid: 10, clock_ns: 5_000_000_000, wall_ns: 1_700_000_000_000_000_000)
    parent.strings(1 => "Job#run", 2 => "job.rb").frames(1 => [1, 2, 5]).stacks(1 => [1])
    parent.events([5_000_000_000, 1, :resumed], [5_000_500_000, 1, :blame, 1], [5_100_000_000, 1, :suspended]).end
    child = TraceEncoder.new(pid: 11, parent_pid: 10, clock_ns: 50, wall_ns: 1_700_000_000_020_000_000)
    child.strings(8 => "Job#run", 9 => "job.rb").frames(4 => [8, 9, 5]).stacks(2 => [4])
    child.events([50, 1, :resumed], [100, 1, :blame, 2], [40_000_050, 1, :suspended], [200_000_050, 1, :exited]).end
    trace = trace_of(child, parent)
    merged = trace.to_h

    assert_equal [[0, 11, 10, 0.02, 0.22], [1, 10, 1, 0.0, 0.1]],
                 merged[:processes].map { |process| process.values_at(:id, :pid, :parent_pid, :start_s, :end_s) }
    assert_equal 0.22, merged[:wall_s]
    assert_equal [[0, 1, 0.02, 0.22], [1, 1, 0.0, 0.1]],
                 merged[:threads].map { |thread| thread.values_at(:process, :number, :start_s, :end_s) }
    assert_equal [{ method: "Job#run", file: "job.rb", line: 5 }], merged[:blame][:frames]
    assert_equal [1, 1, 0, 0, 0, 1, 0], trace.events.map(&:first)
    assert_equal trace.events.map { |event| event[1] }.sort, trace.events.map { |event| event[1] }
    assert_equal [0.02, 0.0], trace.lanes.map { |lane| lane[:start_s] }
  end

  def test_late_events_come_in_their_place
    encoder = TraceEncoder.new
    encoder.events([ms(0), 1, :resumed], [ms(9), 1, :suspended]).events([ms(5), 2, :ready], [ms(30), 2, :resumed])
    trace = trace_of(encoder.end)

    assert_equal [0.0, 0.005, 0.009, 0.03], trace.events.map { |event| event[1] }
    assert_equal [{ thread: nil, s: 0.021 }, { thread: 0, s: 0.004 }], trace.to_h[:threads].last[:waited_for]
  end

  def test_names_in_no_known_encoding
    encoder = TraceEncoder.new(command: "ruby \xff".b).thread(1, "caf\xe9".b).events([ms(0), 1, :resumed])
    known = trace_of(encoder.end).to_h

    assert_equal "caf\u{fffd}", known[:threads].first[:name]
    assert_predicate known[:processes].first[:command], :valid_encoding?
  end

  def test_work_of_one_name_is_one
    other = TraceEncoder.new.strings(1 => "GET /other", 2 => "request")
    other.events([ms(0), 3, :mark_begin, 2, :request], [ms(9), 3, :mark_end, 2, :request], [ms(9), 3, :mark_name, 1],
                 [ms(10), 3, :mark_begin, 2, :job], [ms(14), 3, :mark_end, 2, :job])

    assert_equal [{ name: "request", kind: nil, count: 1, total_s: 0.065, running_s: 0.01, ready_s: 0.041, computed_s: 0.0, blamed_s: 0.0,
                    longest: { thread: 1, start_s: 0.01, total_s: 0.065, running_s: 0.01, ready_s: 0.041, behind: [{ frames: [0, 1], s: 0.03 }] }, blocked: [], blamed: [] }], trace_of(known_trace).to_h[:work]
    assert_equal [["request", "job", 2, 0.069, 0.014, 0.041], ["GET /other", "request", 1, 0.009, 0.009, 0.0]],
                 trace_of(known_trace, other.end).to_h[:work].map { |work| work.values_at(:name, :kind, :count, :total_s, :running_s, :ready_s) }
  end

  # Thread 1's second request ends among what was dropped, thread 2's first job and an inner mark of thread 3.
  def test_work_whose_end_was_dropped_hides_none_that_comes_after_it
    encoder = TraceEncoder.new.strings(1 => "GET /", 2 => "GET /other", 3 => "Report", 4 => "mark")
    encoder.events([ms(0), 1, :mark_begin, 1, :request], [ms(1), 1, :mark_end, 1, :request], [ms(2), 1, :mark_begin, 1, :request],
                   [ms(2), 2, :mark_begin, 3, :job], [ms(2), 3, :mark_begin, 4], [ms(3), 3, :mark_begin, 4]).dropped(3, 0)
    encoder.events(*Array.new(5) do |number|
      at = 10 + 10 * number
      [[ms(at), 1, :mark_begin, 2, :request], [ms(at), 2, :mark_begin, 3, :job], [ms(at + 2), 1, :mark_end, 2, :request],
       [ms(at + 2), 2, :mark_end, 3, :job], [ms(at + 3), 3, :mark_end, 4], [ms(at + 3), 3, :mark_begin, 4]]
    end.flatten(1))
    trace = trace_of(encoder.end).to_h
    assert_equal({ "GET /" => 1, "GET /other" => 5, "Report" => 5, "mark" => 6 }, trace[:work].to_h { |work| work.values_at(:name, :count) })
    assert_equal [0.01] * 2, trace[:work].select { |work| ["GET /other", "Report"].include?(work[:name]) }.map { |work| work[:total_s].round(6) }
  end

  def test_without_work_nothing_came_since_it_began
    idle = TraceEncoder.new.events([ms(0), 3, :resumed], [ms(9), 3, :suspended]).end

    assert_nil trace_of(idle).to_h[:totals][:since_work]
    assert_equal trace_of(known_trace).to_h[:totals][:since_work], trace_of(known_trace, idle).to_h[:totals][:since_work]
  end

  # As of who was named in full, and renamed after Ruby was asked last.
  def test_a_thread_named_twice_keeps_its_site
    encoder = TraceEncoder.new.thread(1, "early", "a.rb:1").thread(1, "late").thread(2, "named", "b.rb:1").thread(2, "named", "b.rb:2")
    threads = trace_of(encoder.events([ms(0), 1, :resumed], [ms(1), 2, :ready]).end).to_h[:threads]

    assert_equal [["late", "a.rb:1"], ["named", "b.rb:2"]], threads.map { |thread| thread.values_at(:name, :site) }
  end

  def test_a_trace_without_events
    known = trace_of(TraceEncoder.new.end).to_h

    assert_equal [0.0, []], known.values_at(:wall_s, :threads)
    assert_equal [], trace_of(TraceEncoder.new.end).events.to_a
    assert_equal 0.0, known[:totals][:wait][:mean_s]
  end

  # Who asks what requests waited for asks nothing of their server's boot.
  def test_what_came_before_the_first_request
    encoder = TraceEncoder.new.strings(1 => "boot", 2 => "app.rb", 3 => "GET /").thread(1, "main").thread(2, "web")
    encoder.frames(1 => [1, 2, 5]).stacks(1 => [1])
    encoder.events([ms(0), 1, :resumed], [ms(0), 2, :started], [ms(0), 2, :ready], [ms(40), 1, :blame, 1], [ms(45), 1, :suspended], [ms(49), 1, :resumed],
                   [ms(50), 1, :mark_begin, 3, :request], [ms(70), 1, :blame, 1], [ms(75), 1, :mark_end, 3, :request],
                   [ms(80), 1, :suspended], [ms(80), 2, :resumed], [ms(90), 2, :suspended])
    known = trace_of(encoder.end).to_h
    main, web = known[:threads]

    assert_equal({ running_s: 0.046, ready_s: 0.0, suspended_s: 0.004, ready_batch_s: 0.04, waited_for: [] }, main[:boot])
    assert_equal({ running_s: 0.0, ready_s: 0.05, suspended_s: 0.0, ready_batch_s: 0.0, waited_for: [{ thread: 0, s: 0.046 }, { thread: nil, s: 0.004 }] },
                 web[:boot])
    assert_equal [{ thread: 0, s: 0.076 }, { thread: nil, s: 0.004 }], web[:waited_for]
    assert_equal [1, 0.02, 0.02], [*known[:blame].values_at(:samples, :weight_s), known[:work].first[:blamed_s]]
  end

  # Whatever the events are: times sum to the thread's life, waits to whom was waited for.
  def test_identities
    random = Random.new(3)
    time = 2_000_000
    kinds = TraceEncoder::KINDS.keys - %i[mark_begin mark_end mark mark_name]
    events = Array.new(5000) { [time += random.rand(100_000), random.rand(1..9), kinds.sample(random: random), random.rand(3)] }
    known = trace_of(TraceEncoder.new.events(*events).end).to_h
    known[:threads].each do |thread|
      assert_in_delta thread[:end_s] - thread[:start_s], thread.values_at(:running_s, :ready_s, :suspended_s).sum, 1e-9
      assert_in_delta thread[:ready_s], thread[:waited_for].sum { |row| row[:s] }, 1e-9
    end

    assert_in_delta known[:wall_s], known[:totals].values_at(:running_s, :idle_s).sum, 1e-9
  end

  def test_other_threads_run_during_a_long_pass
    kinds = %i[ready resumed suspended]
    encoder = TraceEncoder.new
    20.times { |block| encoder.events(*Array.new(5000) { |turn| [ms(block * 5000 + turn), 1 + turn % 7, kinds[turn % 3]] }) }
    trace = trace_of(encoder.end)
    thread = Thread.new { trace.to_h }
    thread.join

    assert_equal 100_000, thread.value[:processes].first[:events]
  end

  def test_the_heap_may_be_compacted_between_two_files
    *paths, last = Array.new(30) { |place| file(known_trace, "trace#{place}.headway") }
    size = ::File.size(last)
    junk = Array.new(100_000) { |number| "junk #{number}" * 6 } # what comes next is at the heap's end, and moves
    compacting = Object.new
    compacting.define_singleton_method(:to_path) do
      junk.clear
      GC.compact if GC.respond_to?(:compact)
      junk.concat(Array.new(200_000) { |number| "other #{number}" * 5 }) # what was free afterwards isn't
      last
    end

    found = Headway::Native::Traces.analyse([*paths, compacting].map { |path| [path, size] }, false)
    assert_kind_of Hash, found, found.inspect
    assert_equal 30, found[:processes].size
  end
end
