# frozen_string_literal: true

require "test_helper"
require "headway/summary"

class SummaryTest < Minitest::Test
  UNDER_FAIR = " Policy fair is on already: of a recording (--record FILE), headway advise FILE says whether more processes help.\n"
  NONE = { count: 0, p50: nil, p99: nil, max: nil }.freeze

  def test_process_totals
    text = summary([thread("main")])

    assert_match(/process 42, app\.rb, Ruby 3\.4\.1, policy fair, quantum 100 ms, preempt signal$/, text)
    assert_match(/12\.3 s passed; over all threads: running 1\.00 s, ready 20\.0 ms, suspended 5\.00 s$/, text)
    assert_match(/waits: 7, p50 20\.0 µs, p99 900 µs, max 100 ms; holds: none$/, text)
    assert_match(/switches: 5 voluntary, 2 preempted; preemptions 3, parks 4, timed-out parks 0, retries 6$/, text)
  end

  def test_every_thread_has_a_row_and_columns_line_up
    lines = summary([thread("main"), thread("worker-3", ready: 0.5), thread("pool", count: 4)]).lines

    rows = lines.grep(/^  (thread|main|worker-3|pool \(4 threads\)) /)
    assert_equal 4, rows.size
    assert_equal 1, rows.map { |row| row.chomp.length }.uniq.size
  end

  def test_columns_line_up_beside_names_whose_characters_take_two
    text = summary([thread("main"), thread("\u30ef\u30fc\u30ab\u30fc"), thread("\u6f22" * 30)])
    rows = text.lines.grep(/^  (main|\u30ef\u30fc\u30ab\u30fc|\u6f22{19}\u2026) /)

    assert_equal 3, rows.size
    assert_equal 1, rows.map { |row| Headway::TextWidth.of(row.chomp) }.uniq.size, text
  end

  # What tells least goes first.
  def test_in_a_narrow_terminal_it_has_fewer_columns
    headings = { nil => "running ready suspended count p50 p99 max count p50 p99 max", 104 => "running ready suspended count p50 p99 max count p50 p99 max",
                 80 => "running ready suspended count p50 p99 max p99 max", 56 => "running ready suspended p50 p99 max", 40 => "running ready p99 max",
                 10 => "running ready max" }
    headings.each do |room, expected|
      lines = Headway::Summary::Table.new([thread("worker-3"), thread("main", hold: { count: 9, p50: 1e-5, p99: 2e-4, max: 4e-4 })], room: room).lines
      assert_equal ["thread", *expected.split], lines[1].split
      assert_operator lines.map(&:length).max, :<=, room unless room.nil? || room == 10
      assert_equal expected.scan("max").size, lines[0].split.size, "over each group of columns"
    end
  end

  def test_the_longest_waiters_come_first_and_the_rest_are_counted
    text = summary(Array.new(25) { |index| thread("t#{index}", ready: index.to_f) })

    assert_operator text.index("  t24 "), :<, text.index("  t23 ")
    refute_match(/^  t4 /, text)
    assert_includes text, "and 5 more that waited less"
  end

  def test_a_waiter_is_named_with_the_holder
    worker = thread("worker-3", running: 0.5, ready: 4.1, suspended: 5.4, caused: 0.2)
    others = [thread("crunch", running: 5.0, suspended: 0.1, caused: 4.5), thread("main", running: 9.0, caused: 0.1)]

    assert_includes summary([worker, *others]),
                    "worker-3 waited 41 % of its time for the GVL (4.10 s of 10.0 s); crunch kept others waiting most (4.50 s).#{UNDER_FAIR}"
    worker[:waited_for] = [{ name: nil, number: nil, seconds: 1.5 }, { name: "job", number: 4, seconds: 1.4 }, { name: "main", number: 1, seconds: 1.2 }]
    assert_includes summary([worker, *others]), "worker-3 waited 41 % of its time for the GVL (4.10 s of 10.0 s), longest for job (1.40 s)."
    worker[:waited_for][1][:seconds] = 2.2
    assert_includes summary([worker, *others]), "(4.10 s of 10.0 s), mostly for job (2.20 s)."
    unknown = [worker, *others].map { |row| row.merge(waited_for: nil, caused: nil) }
    assert_includes summary(unknown), "worker-3 waited 41 % of its time for the GVL (4.10 s of 10.0 s).#{UNDER_FAIR}"
  end

  def test_little_that_is_left_under_fair_is_no_reason_to_ask
    others = [thread("crunch", running: 5.0, suspended: 0.1, caused: 0.2)]

    assert_includes summary([thread("worker-3", running: 0.5, ready: 0.2, suspended: 5.4), *others]), "crunch kept others waiting most (200 ms).\n"
  end

  # Fair preempts who has run for 5 ms without blocking.
  def test_fair_is_no_remedy_for_waits_behind_what_is_brief
    threads = [thread("io", running: 0.1, ready: 4.0, suspended: 1.0), thread("pool", running: 4.9, suspended: 0.1, caused: 4.0, count: 50)]
    brief, long = [0.9, 1.1].map { |batch| summary(threads, policy: :observe, ready: 4.0, batch: batch) }

    assert_match(/io waited 78 % .*\. No policy shortens that: who has the GVL mostly gives it up by itself within 5 ms\. More processes do\.$/, brief)
    assert_match(/io waited 78 % .*; --policy fair would let it go first\.$/, long)
    assert_match(/ No policy shortens that: collections of garbage keep the GVL\. More processes do, or less garbage\.$/,
                 summary(threads, policy: :observe, ready: 4.0, batch: 0.9, gc_s: 0.3))
    assert_includes summary(threads, ready: 4.0, batch: 0.9), UNDER_FAIR
  end

  # As in a server that has ended, whose threads have one name.
  def test_threads_that_share_a_row_may_have_waited_for_one_another
    pool = thread("job", running: 45.0, ready: 87.0, suspended: 174.0, caused: 86.0, count: 5)
    pulse = thread("pulse", running: 0.02, ready: 1.0, suspended: 60.0, caused: 0.041)

    assert_includes summary([pool, pulse], policy: :observe),
                    "job (5 threads) waited 28 % of its time for the GVL (87.0 s of 306 s); they kept one another and others waiting most (86.0 s); " \
                    "--policy fair would let it go first."
    crunch = thread("crunch", running: 60.0, caused: 90.0)
    assert_includes summary([pool, crunch]), "(87.0 s of 306 s); crunch kept others waiting most (90.0 s).#{UNDER_FAIR}"
  end

  # Of a pool too large to be told apart it isn't known what its threads caused: most, most likely.
  def test_who_kept_others_waiting_most_is_told_where_it_is_known_only
    pool = thread("job", running: 0.8, ready: 160.0, suspended: 100.0, caused: nil, count: 300)
    main = thread("main", running: 0.1, caused: 7.3)

    assert_includes summary([pool, main], ready: 160.0), "job (300 threads) waited 61 % of its time for the GVL (160 s of 261 s).#{UNDER_FAIR}"
    assert_includes summary([pool, main.merge(caused: 90.0)], ready: 160.0), "(160 s of 261 s); main kept others waiting most (90.0 s).#{UNDER_FAIR}"
  end

  # Stock Ruby keeps such a thread waiting for so long that it is hardly ever suspended.
  def test_a_starved_thread_is_not_taken_for_a_computing_one
    text = summary([thread("io", running: 0.001, ready: 9.5, suspended: 0.3), thread("crunch", running: 9.5, suspended: 0.0)],
                   policy: :observe)

    assert_match(/^io waited 97 % .*; --policy fair would let it go first\.$/, text)
  end

  def test_with_threads_that_cannot_be_scheduled_it_says_what_would_have_to_change
    text = summary([thread("io", running: 0.001, ready: 9.5, suspended: 0.3), thread("crunch", running: 9.5, suspended: 0.0)],
                   policy: :observe, many_to_many: true)

    assert_match(/^io waited .*; --policy fair would let it go first, but not with M:N threads: unset RUBY_MN_THREADS for it\.$/, text)
  end

  def test_a_process_that_had_less_processor_time_than_the_gvl_was_held
    said = "For at least 40 % of the time that the GVL was held (400 ms), the holder was on no processor: other programs, a quota or threads " \
           "without the GVL took it, or native code slept."

    assert_operator summary([thread("main")], cpu_s: 0.6), :end_with?, " #{said}\n"
    [0.91, 1.0, 7.0].each { |cpu_s| refute_includes summary([thread("main")], cpu_s: cpu_s), "processor" }
  end

  def test_a_quota_that_was_used_up
    said = " The CPU quota was used up in 9 of its 90 periods, and then every thread stands still until the next: no policy helps there, " \
           "a larger quota does.\n"

    assert_operator summary([thread("main")], quota: { periods: 90, exhausted: 9 }), :end_with?, said
    assert_operator summary([thread("main")], cpu_s: 0.6, quota: { periods: 90, exhausted: 9 }), :end_with?, " the holder was on no processor.#{said}"
    refute_includes summary([thread("main")], quota: { periods: 90, exhausted: 1 }), "quota"
  end

  # A Mutex or a pool of connections is what this program is bound by, and other programs have the processors.
  def test_with_the_gvl_free_no_policy_helps
    threads = [thread("io", running: 0.01, ready: 0.3, suspended: 2.7, caused: 0.02), thread("main", running: 0.1, caused: 0.03)]
    text = summary(threads, policy: :observe, ready: 0.32)

    assert_match(/^io waited 79 % of its time under load .*; most waits were with the GVL free, as the system let threads run late\.$/, text)
    refute_includes text, "--policy"
    assert_includes summary([*threads, thread("rest", caused: 0.2)], policy: :observe, ready: 0.32), "--policy fair"
    assert_includes summary([*threads, thread("rest", caused: nil)], policy: :observe, ready: 0.32), "--policy fair"
  end

  # Regexps, digests and the like in C: under any policy as long as one takes, but on stock Ruby as long as ten do (ten: TimeSliceTest).
  def test_no_policy_helps_against_code_that_heeds_no_interrupt_for_as_long_as_that_takes
    threads = [thread("io", running: 0.5, ready: 4.1, suspended: 5.4, caused: 0.0), thread("digest", running: 9.0, suspended: 0.1, caused: 4.1)]
    once = " With --policy fair it would go after one such time, not after several"

    { fair: "\n", observe: "#{once}.\n", quantum: "#{once}.\n" }.each do |policy, rest|
      text = summary(threads, policy: policy, late: 0.8)
      assert_match(/^io waited 41 % .*; digest kept others waiting most \(4\.10 s\)\. No policy cuts that short: /, text)
      assert_operator text, :end_with?, "(native code that keeps the GVL, a garbage collection, or no processor to run on).#{rest}"
    end
    assert_operator summary(threads, policy: :observe, late: 0.8, many_to_many: true), :end_with?,
                    "#{once}, but not with M:N threads: unset RUBY_MN_THREADS for it.\n"
    assert_includes summary(threads, policy: :observe, late: 0.2), "; --policy fair would let it go first.\n"
  end

  # Threads of a pool that hand a Mutex on, 20 µs each.
  def test_what_is_no_reason_to_ask_under_fair_is_none_to_take_it
    brief = thread("worker", running: 0.01, ready: 0.006, suspended: 2.4, caused: 0.004).merge(wait: { count: 99, p50: 5e-6, p99: 2e-4, max: 4e-4 })

    assert_match(/^worker waited .* for the GVL \(6\.00 ms of [^;]*\)[^-]*\.$/, summary([brief, brief.merge(name: "other")], policy: :observe, ready: 0.012))
  end

  # A server that was under load for 2 s and then idled for a minute: what was wrong is no less wrong.
  def test_time_in_which_nobody_ran_is_left_out
    text = summary([thread("light", running: 0.1, ready: 1.2, suspended: 60.0, caused: 0.0),
                    thread("heavy", running: 2.0, suspended: 59.0, caused: 1.2)], policy: :observe, ready: 1.2)

    assert_includes text, "light waited 57 % of its time under load for the GVL (1.20 s of 2.10 s); heavy kept others waiting most (1.20 s); --policy fair"
  end

  # Several threads in one row, as those of a pool that has ended, are measured against their lives, a single one against the time of load.
  def test_who_waited_for_little_is_no_example
    text = summary([thread("pool", running: 2.0, ready: 1.8, suspended: 160.0, caused: 1.8).merge(count: 5),
                    thread("heartbeat", running: 0.001, ready: 0.05, suspended: 60.0, caused: 0.0)], policy: :observe, ready: 1.85)

    assert_match(/^pool.* waited /, text)
  end

  def test_a_single_computing_thread_waited_for_no_other
    text = summary([thread("busy", running: 2.0, ready: 1.0, suspended: 0.0, caused: 0.0)], policy: :observe, ready: 1.0)

    assert_match(/^busy waited 33 % .*; most waits were with the GVL free/, text)
  end

  def test_what_it_takes_to_wake_an_idle_thread_is_no_wait_to_speak_of
    timer = thread("timer", running: 0.002, ready: 0.006, suspended: 60.0, caused: 0.0)
    timer[:wait] = { count: 60, p50: 1e-4, p99: 1e-3, max: 2e-3 }

    assert_match(/^Nobody waited to speak of: /, summary([timer], ready: 0.006))
    assert_match(/^Nobody waited to speak of: /, summary([timer.merge(waited_for: [{ name: nil, number: nil, seconds: 0.006 }])], ready: 0.006))
    assert_match(/^timer waited /, summary([timer.merge(waited_for: [{ name: "main", number: 1, seconds: 0.006 }])], ready: 0.006))
  end

  def test_computing_threads_take_turns
    text = summary([thread("a", running: 5.0, ready: 5.0, suspended: 0.0), thread("b", running: 5.0, ready: 4.9, suspended: 0.0)])

    assert_match(/^Only CPU-bound threads waited, and for one another \(a: 50 % of its time\)/, text)
  end

  def test_who_joins_computing_threads_is_not_what_it_is_about
    computing = Array.new(4) { |i| thread("cpu-#{i}", running: 1.0, ready: 3.0, suspended: 0.0) }
    main = thread("main", running: 0.02, ready: 0.09, suspended: 3.0, caused: 0.0)

    assert_match(/^Only CPU-bound threads waited, and for one another \(cpu-\d: 75 % of its time\): /, summary([main, *computing], policy: :observe, ready: 12.09))
    io = thread("io", running: 0.01, ready: 0.8, suspended: 3.2, caused: 0.0)
    assert_match(/^io waited 20 % .*--policy fair would let it go first\.$/, summary([main, *computing, io], policy: :observe, ready: 12.9))
  end

  # Ten threads in one row that idle between their jobs, beside one that computes.
  def test_of_jobs_that_waited_it_tells_and_not_of_their_threads
    pool = thread("sidekiq.default/processor", running: 1.0, ready: 2.0, suspended: 400.0, caused: 0.1, count: 10)
    crunch = thread("crunch", running: 9.0, caused: 1.9)
    jobs = { job: { running: 0.9, ready: 1.9, suspended: 1.2, wait: { count: 300, p50: 0.001, p99: 0.1, max: 0.2 } } }
    text = summary([pool, crunch], policy: :observe, ready: 2.0, work: jobs)

    assert_match(/^  jobs: running 900 ms, ready 1\.90 s, suspended 1\.20 s; waits in each: 300, p50 1\.00 ms, p99 100 ms, max 200 ms$/, text)
    assert_includes text, "Jobs waited 48 % of their time for the GVL (1.90 s of 4.00 s, half of them for 1.00 ms or less); crunch kept others waiting most (1.90 s); " \
                          "--policy fair would let those that compute little go first.\n"
    assert_includes summary([pool, crunch], ready: 2.0, work: jobs), "crunch kept others waiting most (1.90 s).#{UNDER_FAIR}"
    [0.0, 9e-7].each do |p50|
      jobs[:job][:wait][:p50] = p50
      assert_includes summary([pool, crunch], ready: 2.0, work: jobs), " (1.90 s of 4.00 s, half of them for less than 1 µs); "
    end
  end

  def test_of_works_it_does_not_tell_where_others_did_the_waiting
    io = thread("io", running: 0.1, ready: 4.0, suspended: 1.0, caused: 0.0)
    works = { request: { running: 0.9, ready: 0.3, suspended: 1.2, wait: { count: 9, p50: 0.01, p99: 0.2, max: 0.2 } } }

    assert_match(/^io waited /, summary([io, thread("busy", caused: 4.0)], policy: :observe, ready: 4.5, work: works))
  end

  def test_requests_that_only_compute_take_turns
    pool = Array.new(3) { |i| thread("tp #{i}", running: 5.0, ready: 10.0, suspended: 0.1, caused: 10.0) }
    works = { request: { running: 15.0, ready: 30.0, suspended: 0.3, wait: { count: 99, p50: 0.3, p99: 0.9, max: 0.9 } } }

    assert_match(/^Only CPU-bound threads waited, and for one another \(requests: 66 % of their time\): /, summary(pool, ready: 30.0, work: works))
    pool[0][:suspended] = 5.0 # idle, or blocks
    assert_match(/^Requests waited 66 % of their time .*; --policy fair would let those that compute little go first\.$/, summary(pool, policy: :observe, ready: 30.0, work: works))
  end

  def test_nobody_waited
    assert_match(/^Nobody waited to speak of: 20\.0 ms /, summary([thread("main", ready: 0.004, suspended: 0.1)]))
    assert_match(/^Nobody waited: /, summary([thread("main")], wait: NONE))
  end

  def test_notices
    assert_includes summary([thread("main")], notices: ["signals are off"]), "Note: signals are off\n"
  end

  def test_names_can_be_anything
    text = summary([thread("\u202eover\u2028"), thread("a\e[31m\nb"), thread("\xff\xfe"), thread("x" * 500), thread(""), thread("é".encode("ISO-8859-1"))])

    assert_predicate text, :valid_encoding?
    refute_match(/[\e\u202e\u2028]/, text)
    assert_operator text.lines.map(&:length).max, :<, 200
  end

  def test_durations
    text = Headway::Summary::Text

    assert_equal ["-", "0", "<1 µs", "1.00 µs", "12.3 µs", "999 µs", "1.00 ms", "100 ms", "1.00 s", "59.9 s", "12345 s"],
                 [nil, 0.0, 3e-7, 1e-6, 12.34e-6, 999e-6, 999.9e-6, 0.1, 1.0, 59.94, 12_345.0].map { |time| text.duration(time) }
  end

  # Of a path cut at its end the file would be gone, and with it which thread it is.
  def test_a_thread_without_a_name_is_called_by_its_file_and_line
    text = summary([thread("/srv/apps/shop/releases/20261126133000/app/models/report.rb:33"), thread("/worker/3"), thread("GET /a/b:80")])

    assert_match(%r{^  models/report\.rb:33  }, text)
    assert_match(%r{^  /worker/3  }, text)
    assert_match(%r{^  GET /a/b:80  }, text)
  end

  # Of any encoding, a locale's or none.
  def test_names_are_printable_utf8
    names = ["h\u00e9\e[2J\n", "h\u00e9\e[2J\n".b, "h\u00e9\e[2J\n".dup.force_encoding("US-ASCII"),
             "h\u00e9\e[2J\n".encode("UTF-16LE"), "h\xe9\e[2J\n".dup.force_encoding("ISO-8859-1")]
    assert_equal ["h\u00e9?[2J?"], names.map { |name| Headway::Summary::Text.plain(name) }.uniq
    assert_equal ["a?b", "a?b", ""], ["a\xffb", "a\xffb".b, nil].map { |name| Headway::Summary::Text.plain(name) }
  end

  private

  def summary(threads, policy: :fair, cpu_s: 1.0, ready: 0.02, batch: ready, late: 0.0, wait: { count: 7, p50: 20e-6, p99: 900e-6, max: 0.1 }, notices: [],
              quota: nil, many_to_many: false, work: {}, gc_s: 0.0)
    process = { running: 1.0, running_batch: 0.0, ready_batch: batch, ready: ready, suspended: 5.0, wait: wait, hold: NONE,
                switches: { voluntary: 5, preempted: 2 }, preemptions: 3, parks: 4, park_timeouts: 0, retries: 6,
                threads: threads.size }
    stats = { policy: policy, preempt: :signal, quantum_ms: 100.0, wall: 12.34, process: process, work: work, threads: threads,
              blame: { samples: 9, weight: 0.9, late: late, folded: 0, stacks: [] } }
    Headway::Summary.new(stats, cpu_s: cpu_s, gc_s: gc_s, quota: quota, notices: notices, many_to_many: many_to_many, pid: 42, program: "/srv/app.rb", ruby: "3.4.1").to_s
  end

  def thread(name, running: 1.0, ready: 0.0, suspended: 1.0, count: 1, caused: ready, hold: NONE)
    { name: name, alive: true, count: count, batch: false, quantum_ms: nil, running: running, ready: ready,
      caused: caused, suspended: suspended, wait: { count: 1, p50: ready, p99: ready, max: ready }, hold: hold,
      switches: { voluntary: 1, preempted: 0 } }
  end
end
