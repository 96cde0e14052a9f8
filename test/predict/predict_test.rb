# frozen_string_literal: true

require_relative "recorded"

# `headway predict`.
class PredictTest < PredictCase
  def test_of_no_trace_there_is_no_workload
    assert_equal "no trace file given", assert_raises(ArgumentError) { Headway::Workload.open }.message
  end

  def test_the_recorded_setting_comes_out_as_recorded
    object = json_of("predict", orders)

    assert_equal({ "processes" => 1, "threads" => 1, "policy" => "stock", "quantum_ms" => 100.0, "rate_per_s" => nil },
                 object["recorded"].slice("processes", "threads", "policy", "quantum_ms", "rate_per_s"))
    prediction, = object["predictions"]
    assert_in_delta 1000 / 6.0, prediction["requests_per_s"]["median"], 0.2
    assert_in_delta 6.0, prediction["p99_ms"]["median"], 0.01
    assert_equal 21, prediction["p99_ms"]["n"]
    assert_in_delta 33.3, prediction["gvl_pct"], 0.5
    assert_nil prediction["refused"]
  end

  def test_more_threads_do_more_until_the_gvl_is_full_and_more_processes_go_on
    object = json_of("predict", orders, "--threads", "1,2,8", "--processes", "1,2")
    rates = object["predictions"].to_h { |row| [row.values_at("processes", "threads"), row.dig("requests_per_s", "median")] }

    assert_operator rates[[1, 2]], :>, 1.8 * rates[[1, 1]]
    assert_in_delta 500, rates[[1, 8]], 5
    assert_in_delta 2, rates[[2, 2]] / rates[[1, 2]], 0.05
    assert_nil rates[[2, 8]] # refused
  end

  def test_classes_are_told_apart_and_a_policy_changes_them
    path = write(one_thread(1_000, names: { 1 => "light", 2 => "heavy" }) { |i| i % 20 == 0 ? [2, 80, 1, 80] : [1, 0.5, 5, 0.5] })
    object = json_of("predict", path, "--threads", "5", "--policy", "stock,fair")
    light, heavy = object["predictions"].map { |row| row["classes"].to_h { |kind| [kind["name"], kind] } }.then do |stock, fair|
      %w[light heavy].map { |name| [stock[name], fair[name]] }
    end

    assert_operator light.last.dig("p95_ms", "median"), :<, light.first.dig("p95_ms", "median") / 3
    assert_operator heavy.first.dig("mean_ms", "median"), :>, 161
    assert_nil heavy.first.dig("p99_ms", "median") # 50 are too few for it
    assert(object["cautions"].any? { |text| text.include?("heavy (50)") })
  end

  def test_open_arrivals_queue_in_front_of_the_pool_and_too_many_are_too_slow
    object = json_of("predict", orders, "--rate", "20,150,400", "--threads", "1")
    calm, busy, over = object["predictions"]

    assert_in_delta 6, calm.dig("p50_ms", "median"), 0.5
    assert_operator busy.dig("mean_ms", "median"), :>, 15 # M/D/1: 6 + 0.9 * 6 / 0.2 = 33
    assert over["overloaded"]
    assert_nil over.dig("p50_ms", "median")
  end

  # So few that the simulated hour is over before the requests that are to warm up; open and closed.
  def test_requests_that_come_seldom_or_take_long_are_measured_too
    seldom = write(one_thread(300, pause_ms: 2_500) { [1, 1, 4, 1] }, "seldom.headway")
    row = json_of("predict", seldom)["predictions"].first
    assert_in_delta 1 / 2.506, row.dig("requests_per_s", "median"), 0.1
    assert_in_delta 6, row.dig("mean_ms", "median"), 0.1

    long = write(one_thread(60) { [1, 100, 9_800, 100] }, "long.headway")
    rows = json_of("predict", long, "--threads", "1,2")["predictions"]
    assert_in_delta 0.1, rows.first.dig("requests_per_s", "median"), 0.001
    assert_in_delta 0.2, rows.last.dig("requests_per_s", "median"), 0.01
    assert json_of("predict", long, "--rate", "0.2")["predictions"].first["overloaded"]
  end

  # In an hour few are done, of many threads' in step all at once.
  def test_jobs_that_only_compute_are_done_no_faster_by_more_threads
    path = write(one_thread(60) { [1, 60_000, 0, 0] }, "jobs.headway")
    json_of("predict", path, "--threads", "1,2,8")["predictions"].each do |row|
      assert_in_delta 1, 60 * row.dig("requests_per_s", "median"), 0.03
      assert_in_delta row["threads"], row.dig("mean_ms", "median") / 60_000, 0.03 * row["threads"]
      assert_in_delta 100, row["gvl_pct"], 0.1
    end
  end

  def test_what_takes_longer_than_can_be_simulated_is_refused
    hours = write(one_thread(60) { [1, 7_200_000, 0, 0] }, "hours.headway")
    one, eight = json_of("predict", hours, "--threads", "1,8")["predictions"]
    assert_in_delta 1, 7_200 * one.dig("requests_per_s", "median"), 0.03
    why = /its requests take so long, or come so seldom, that \d+ are all that could be simulated in 28 hours/
    assert_match(/\A#{why}\z/, eight["refused"])

    events = (1..8).flat_map { |thread| [[ns(0), thread, :known, 1]] }
    60.times do |i|
      thread = (i % 8) + 1
      events << [ns(7_200_000 * i), thread, :resumed] << [ns(7_200_000 * i), thread, :mark_begin, 1]
      events << [ns(7_200_000 * (i + 1)), thread, :mark_end, 1] << [ns(7_200_000 * (i + 1)), thread, :preempted]
    end
    status, out, err = run_cli("advise", write(TraceEncoder.new.strings(1 => "job").events(*events).dropped(0, 0).end))
    assert_equal [1, ""], [status, out]
    assert_match(/\Aheadway: can't advise from this trace: #{why}\n\z/, err)
  end

  def test_why_it_is_too_slow_is_said
    _, threads, = run_cli("predict", orders, "--rate", "400", "--threads", "1")
    _, gvl, = run_cli("predict", orders, "--rate", "700", "--threads", "8")

    assert_match(/^Note: too slow: requests arrive faster than that setting does them\.$/, threads)
    assert_match(/^Note: too slow: .*for want of the GVL: ask for more processes/, gvl)
  end

  def test_a_pool_that_was_idle_at_times_is_open_at_the_rate_recorded
    recorded = json_of("predict", orders(500, pause_ms: 6))["recorded"]

    assert_in_delta 1000 / 12.0, recorded["rate_per_s"], 1
    assert_in_delta 50, recorded["busy_pct"], 1
  end

  # Each thread takes the next job at once, three long ones and one short ones; the trace, of a process that was killed, ends in the middle.
  def test_a_pool_that_was_always_busy_is_closed_whatever_the_end_cuts_off
    events = { 1 => 3_000, 2 => 3_000, 3 => 3_000, 4 => 100 }.flat_map do |thread, job_ms|
      (0...9_000).step(job_ms).flat_map do |at_ms|
        [[at_ms, :mark_begin, 1], [at_ms + 1, :suspended], [at_ms + job_ms - 2, :resumed], [at_ms + job_ms - 1, :mark_end, 1]]
      end.map { |at_ms, *event| [ns(at_ms), thread, *event] }
    end
    events = events.select { |at_ns,| at_ns < ns(8_900) }.sort_by.with_index { |event, i| [event.first, i] }
    recorded = json_of("predict", write(TraceEncoder.new(policy: "observe").strings(1 => "job").events(*events)))["recorded"]

    assert_operator recorded["busy_pct"], :>, 98
    assert_nil recorded["rate_per_s"]
    assert_equal 89 + 6, recorded["requests"]
    assert_in_delta (89 + 9) / 8.9, recorded["requests_per_s"], 0.05
  end

  def test_a_recorded_setting_that_comes_out_far_slower_than_recorded_is_told
    said = /the setting recorded comes out at \d\d ms a request, where 6 were recorded: .*--rate closed/
    _, text, = run_cli("predict", path = orders(500, pause_ms: 1), "--threads", "1,2")
    assert_match(/^Note: #{said}/, text)
    assert_match said, json_of("predict", path)["cautions"].join("\n")
    [%w[--threads 2], %w[--rate 10], %w[--rate closed]].each { |asked| refute_match said, json_of("predict", path, *asked)["cautions"].join("\n") }
  end

  # As much slower as no error of the model is makes one wonder, unless the few requests recorded may be why.
  def test_a_recorded_setting_that_comes_out_twice_as_slow_is_told
    object = json_of("predict", orders(500, pause_ms: 2))
    figures = object.dig("predictions", 0, "mean_ms")
    assert_in_delta 2.5 * 6, figures["median"], 0.5 * 6
    assert_operator figures["min"], :>, 6
    assert_match(/comes out at \d\d ms a request, where 6 were recorded: /, object["cautions"].join("\n"))
    assert_match(/comes out at [89]\.?\d* ms a request, where 6 were recorded: /, json_of("predict", orders(500, pause_ms: 6))["cautions"].join("\n"))
    refute_match(/comes out at/, json_of("predict", orders(500, pause_ms: 30))["cautions"].join("\n"))
  end

  # Two processes that each compute for 4/9 of their time, which one core can hardly do.
  def test_what_comes_out_slower_on_fewer_cores_is_not_laid_to_arrivals
    paths = (1..2).map { |pid| write(one_thread(500, pause_ms: 9, pid:) { [1, 4, 1, 4] }, "of-#{pid}.headway") }
    as_recorded, fewer = [[], %w[--cores 1]].map { |asked| json_of("predict", *paths, *asked) }
    assert_operator fewer.dig("predictions", 0, "mean_ms", "median"), :>, 3 * 9
    refute_match(/comes out at/, [as_recorded, fewer].map { |object| object["cautions"] }.join("\n"))
    refute_match(/comes out (?:at|too slow)/, run_cli("advise", *paths, "--cores", "1").join("\n"))
  end

  def test_nothing_is_predicted_from_too_little
    status, out, err = run_cli("predict", orders(20))
    assert_equal [1, ""], [status, out]
    assert_match(/\Aheadway: can't predict from this trace: there are only 20 requests/, err)

    encoder = one_thread(500) { [1, 1, 4, 1] }
    lossy = write(TraceEncoder.new.block(:dropped, "\xE8\x07\x00".b), "lossy.headway") # 1000
    status, = run_cli("predict", write(encoder), lossy)
    assert_equal 1, status
  end

  # As Resque forks them.
  def test_works_that_have_a_process_each_are_refused
    40.times { |i| orders(1, span: :job, pid: 100 + i, name: "vm-1.#{100 + i}.headway") }
    status, _, err = run_cli("predict", @directory)

    assert_equal 1, status
    assert_match(/\Aheadway: can't predict from this trace: most jobs had a process of their own, which ended with them: /, err)
    orders(60, span: :job, pid: 99, name: "vm-1.headway")
    assert_equal 0, run_cli("predict", @directory).first
  end

  def test_what_is_too_far_from_what_was_seen_is_refused_with_a_reason
    object = json_of("predict", orders, "--threads", "8,9")

    assert_nil object["predictions"].first["refused"]
    assert_match(/recorded with 1 at a time: 9 are too far/, object["predictions"].last["refused"])
    assert(object["cautions"].any? { |text| text.include?("whether delays grow") })
  end

  # Two threads; when both are in a delay it takes twice as long.
  def test_more_threads_than_can_be_simulated_are_refused
    encoder = TraceEncoder.new.thread(1, "main")
    events = (1..4_100).map { |i| [ns(0), i, :known, 0] } +
             (1..4_100).flat_map { |i| [[ns(i), i, :resumed], [ns(i + 0.5), i, :suspended]] }
    events.each_slice(10_000) { |slice| encoder.events(*slice) }
    path = write(encoder.dropped(0, 0).end)
    %w[predict advise].each do |command|
      status, out, err = run_cli(command, path)
      assert_equal [1, ""], [status, out]
      assert_match(/\Aheadway: can't #{command} from this trace: it takes 4100 threads: 4096 at most can be simulated$/, err)
    end
  end

  def test_delays_that_grow_with_load_are_not_extrapolated
    encoder = TraceEncoder.new(policy: "observe").strings(1 => "query").thread(1, "a").thread(2, "b")
    at = 0
    events = [[ns(0), 1, :known, 0], [ns(0), 2, :known, 0]]
    300.times do |i|
      both = i.odd? ? [1, 2] : [1]
      both.each { |thread| events << [ns(at), thread, :ready] << [ns(at), thread, :resumed] << [ns(at), thread, :mark_begin, 1] << [ns(at += 1), thread, :suspended] }
      at += both.size * 5
      both.each { |thread| events << [ns(at), thread, :ready] << [ns(at), thread, :resumed] << [ns(at += 1), thread, :mark_end, 1] << [ns(at), thread, :suspended] }
    end
    encoder.events(*events).dropped(0, 0).end
    object = json_of("predict", write(encoder), "--threads", "2,3")

    assert_nil object["predictions"].first["refused"]
    assert_match(/delays|saturated/, object["predictions"].last["refused"])
  end

  # As advise's last steps ask for it. Of three threads two at most had a request at a time.
  def test_the_setting_recorded_is_predicted_whatever_its_delays
    encoder = TraceEncoder.new(policy: "observe").strings(1 => "query")
    at = 0
    events = (1..3).map { |thread| [ns(0), thread, :known, 0] }
    300.times do |i|
      both = [1 + (i % 3), 1 + ((i + 1) % 3)].first(1 + (i % 2))
      both.each { |thread| events << [ns(at), thread, :ready] << [ns(at), thread, :resumed] << [ns(at), thread, :mark_begin, 1] << [ns(at += 1), thread, :suspended] }
      at += both.size * 5
      both.each { |thread| events << [ns(at), thread, :ready] << [ns(at), thread, :resumed] << [ns(at += 1), thread, :mark_end, 1] << [ns(at), thread, :suspended] }
    end
    path = write(encoder.events(*events).dropped(0, 0).end)

    assert_equal [nil, nil], json_of("predict", path, "--policy", "stock,fair")["predictions"].map { |row| row["refused"] }
    assert_match(/delays|saturated/, json_of("predict", path, "--threads", "4")["predictions"].first["refused"])
  end

  def test_what_an_endless_trace_lacks_is_said
    events = [[ns(0), 1, :known, 2]]
    60.times { |i| events << [ns(i * 10), 1, :mark_begin, i % 3] << [ns((i * 10) + 2), 1, :suspended] << [ns((i * 10) + 8), 1, :ready] << [ns((i * 10) + 8), 1, :resumed] << [ns((i * 10) + 9), 1, :mark_end, i % 3] }
    path = write(TraceEncoder.new(policy: "observe").strings(1 => "order").thread(1, "worker").events(*events))
    cautions = json_of("predict", path)["cautions"]

    assert_includes cautions, "a trace has no end, as its process was killed, called exit!, became another program or goes on, or the file was cut: it was read up to there"
    assert_includes cautions, "the trace lacks the names of 40 of 60 requests: they count as one class, (unnamed)"
  end

  def test_holders_that_were_on_no_processor_are_a_caution
    said = "for 25 % of the time that the GVL was held the holder was on no processor (other programs, a quota or threads without the GVL " \
           "took it, or native code slept): that is taken for work"
    [[0.5, true], [0.1, false]].each do |off_ms, cautious|
      events = 100.times.flat_map do |i|
        at_ms = 8 * i
        [[ns(at_ms), 1, :mark_begin, 1], [ns(at_ms + 2), 1, :off_cpu, (1000 * off_ms).round], [ns(at_ms + 2), 1, :suspended],
         [ns(at_ms + 6), 1, :ready], [ns(at_ms + 6), 1, :resumed], [ns(at_ms + 6), 1, :mark_end, 1], [ns(at_ms + 6), 1, :suspended],
         [ns(at_ms + 8), 1, :ready], [ns(at_ms + 8), 1, :resumed]]
      end
      path = write(TraceEncoder.new(policy: "observe").strings(1 => "order").thread(1, "worker").events(*events).dropped(0, 0).end)

      assert_equal cautious, json_of("predict", path)["cautions"].include?(said)
    end
  end

  def test_a_trace_that_was_cut_short_is_read_up_to_there
    bytes = one_thread(2_000) { [1, 1, 4, 1] }.bytes
    path = File.join(@directory, "cut.headway")
    File.binwrite(path, bytes[0, bytes.bytesize - 30])
    object = json_of("predict", path)

    assert_operator object["recorded"]["requests"], :>, 1_000
    assert(object["cautions"].any? { |text| text.start_with?("a trace has no end, as its process was killed") })
    status, _, err = run_cli("predict", write(TraceEncoder.new(policy: "unheard of", quantum_ns: 0).dropped(0, 0).end, "empty.headway"))
    assert_equal 1, status
    assert_match(/there are only 0/, err)
  end

  def test_the_table_has_a_line_for_each_setting_and_says_what_it_was_made_of
    status, out, = run_cli("predict", orders, "--threads", "1,9", "--rate", "closed,50")

    assert_equal 0, status
    assert_match(/^Recorded: 1 x 1 stock, quantum 100 ms, 166\.\d requests a second, threads always busy$/, out)
    assert_match(/order: 500, 6\.00 ms each: needs the GVL 2\.00, delays 4\.00$/, out)
    assert_match(/^1 +1 +stock +100 +closed +all +167/, out)
    assert_match(/^1 +1 +stock +100 +50\/s +all/, out)
    assert_equal 2, out.scan(/^Refused: 1 x 9/).size
  end

  # A request may be called anything, and so may what was run.
  def test_no_name_steers_the_terminal
    path = write(one_thread(100, names: { 1 => "a\e[31m\nb\0c", 2 => "a\e[31m\nb\0d" }, command: "x\e]0;y\a") { |i| [1 + (i % 2), 1, 4, 1] })
    %w[predict advise].each do |command|
      _, out, = run_cli(command, path)
      refute_match(/[^\n[:^cntrl:]]/, out)
      assert_match(/a\?\[31m\?b\?c\b.*50/, out)
      assert_equal ["a?[31m?b?c", "a?[31m?b?d"], json_of(command, path).then { |object| object["current"] || object["recorded"] }["classes"].map { _1["name"] }
    end
    assert_includes run_cli("advise", path)[1], "-- 'x?]0;y?'"
  end

  def test_a_directory_stands_for_the_processes_of_a_run
    orders(name: "web.1.headway")
    orders(pid: 4243, name: "web.2.headway")
    assert_equal 2, json_of("predict", @directory)["recorded"]["processes"]
    assert_equal 2, json_of("advise", @directory)["current"]["processes"]
  end

  # Ten classes, of which the last takes longest.
  def test_the_classes_that_took_longest_come_first_and_what_is_left_out_is_said
    path = write(one_thread(100, names: (1..10).to_h { |i| [i, "step #{i}"] }) { |i| [1 + (i % 10), 1, 4, 1 + (i % 10)] })
    _, out, = run_cli("predict", path)

    assert_match(/^Recorded: .*\n  step 10: .*\n  step 9: (.*\n){6}  step 3: .*\n  and 2 more that took less\n\n/, out)
    assert_match(/^Note: too rare in the trace for a p99: step 10 \(10\), .*, step 6 \(10\), and 5 more\.$/, out)
  end

  # A main thread that loads the program for 5 s, by and by, and another that began meanwhile and computes for 1 of 10 ms ever after.
  def test_what_threads_did_before_the_first_request_does_not_go_on_beside_requests
    encoder = TraceEncoder.new(policy: "observe").strings(1 => "order").thread(1, "main").thread(2, "worker").thread(3, "beside")
    events = [[ns(0), 1, :known, 0], [ns(0), 2, :known, 0]]
    500.times { |i| events << [ns(i * 10), 1, :resumed] << [ns((i * 10) + 9), 1, :suspended] }
    1_400.times { |i| events << [ns((i * 10) + 1_009), 3, :resumed] << [ns((i * 10) + 1_010), 3, :suspended] }
    500.times { |i| events << [ns((i * 20) + 5_003), 2, :resumed] << [ns((i * 20) + 5_003), 2, :mark_begin, 1] << [ns((i * 20) + 5_005), 2, :mark_end, 1] << [ns((i * 20) + 5_005), 2, :suspended] }
    ordered = events.sort_by.with_index { |event, i| [event.first, i] }
    path = write(encoder.events(*ordered).dropped(0, 0).end)

    assert_in_delta 20, json_of("predict", path, "--rate", "50")["predictions"].first["gvl_pct"], 2
  end

  # No number of threads is right for both.
  def test_a_server_and_sidekiq_are_not_taken_for_processes_of_one_program
    web = orders(name: "web.headway")
    orders(pid: 4243, command: "/usr/bin/sidekiq -c 10", name: "jobs.headway")
    %w[predict advise].each do |command|
      status, out, err = run_cli(command, @directory)
      assert_equal [1, ""], [status, out]
      assert_match(/\Aheadway: can't #{command} from this trace: it is of Sidekiq \(PID 4243\) and of another program \(PID 4242\), /, err)
      assert_equal 0, run_cli(command, web).first
    end
  end

  # Two workers, of which the second was ended after half of the time, and another one started in its place.
  def test_processes_that_replaced_one_another_are_one
    [[200, 0], [100, 0], [99, 2_001]].each_with_index do |(count, ms_later), i|
      wall_ns = TraceEncoder::HEADER[:wall_ns] + (ms_later * 1_000_000)
      write(one_thread(count, pause_ms: 14, pid: 100 + i, wall_ns: wall_ns) { [1, 1, 4, 1] }, "worker.#{i}.headway")
    end
    recorded = json_of("predict", @directory)["recorded"]
    assert_equal [2, 1, 399], recorded.values_at("processes", "threads", "requests")
    assert_in_delta 100, recorded["requests_per_s"], 2
  end

  def test_of_several_runs_in_a_directory_one_is_taken_and_said
    orders(name: "more.headway")
    orders(300, wall_ns: TraceEncoder::HEADER[:wall_ns] + 60_000_000_000, name: "later.headway")
    %w[predict advise].each do |command|
      status, out, err = run_cli(command, @directory)
      assert_equal 0, status, err
      assert_equal "headway: of 2 runs one after the other the one in which most was done is taken: " \
                   "#{@directory}/more.headway\n", err
      assert_match(/500/, out)
    end
    _, _, err = run_cli("report", @directory)
    assert_match(%r{^headway: warning: these traces are of 2 runs one after the other; the last of them alone is .*/later\.headway$}, err)
    _, _, err = run_cli("report", "#{@directory}/later.headway")
    refute_match(/runs/, err)
  end

  def test_a_directory_without_traces
    assert_bad_usage(/no trace that can be read in directory #{@directory}: there is no \*\.headway/, "predict", @directory)
    assert_bad_usage(/no trace that can be read in directory #{@directory}: there is no \*\.headway/, "advise", @directory)
  end

  def test_bad_usage_is_one_line
    path = orders
    assert_bad_usage(/no trace file/, "predict")
    assert_bad_usage(/nowhere\.headway/, "predict", "nowhere.headway")
    assert_bad_usage(/--threads is "0": give whole numbers from 1 to 1024/, "predict", path, "--threads", "1,0")
    assert_bad_usage(/--threads is "": /, "predict", path, "--threads", "1,")
    # As of a shell's variable that isn't set.
    %w[--threads --processes --quantum --policy --rate].each { |option| assert_bad_usage(/#{option} is "": give/, "predict", path, option, "") }
    assert_bad_usage(/--rate is "": give/, "advise", path, "--rate", "")
    assert_bad_usage(/--processes is "x"/, "predict", path, "--processes", "x")
    assert_bad_usage(/--cores is "1,2": give a whole number from 1 to 4096/, "predict", path, "--cores", "1,2")
    assert_bad_usage(/--quantum is "0": give milliseconds/, "predict", path, "--quantum", "0")
    assert_bad_usage(/--policy is "best": give stock, quantum or fair/, "predict", path, "--policy", "best")
    assert_bad_usage(/--rate is "-1": give requests a second/, "predict", path, "--rate=-1")
    assert_bad_usage(/settings are asked for: 500 at most/, "predict", path, "--threads", (1..300).to_a.join(","), "--processes", "1,2")
    assert_bad_usage(/cannot write/, "predict", path, "--plot", File.join(@directory, "none/plot.svg"))
    assert_bad_usage(/isn't a trace|not a trace|Headway/i, "predict", __FILE__)
  end

  def test_idle_threads_of_the_pool_are_told
    encoder = TraceEncoder.new.strings(1 => "order").thread(1, "srv tp 001").thread(2, "srv tp 002").thread(3, "srv reap")
    events = [1, 2, 3].map { |thread| [ns(0), thread, :known, 0] }
    40.times { |i| events << [ns(10 * i), 1, :resumed] << [ns(10 * i), 1, :mark_begin, 1] << [ns((10 * i) + 1), 1, :mark_end, 1] << [ns((10 * i) + 1), 1, :suspended] }
    object = json_of("predict", write(encoder.events(*events).dropped(0, 0).end))
    assert_includes object["cautions"].first, "1 of 2 threads of the pool had no request"
    assert_equal 1, object.dig("recorded", "threads")
  end

  # Their threads' names are no classes of theirs: not when one is called the same, nor when there are more names than classes are kept.
  def test_threads_beside_requests_take_none_of_their_classes
    [["order"], (1..100).map { |i| "upload #{i}" }].each do |names|
      encoder = TraceEncoder.new.strings(1 => "order")
      names.each_with_index { |name, i| encoder.thread(10 + i, name) }
      events = [[ns(0), 1, :known, 2]]
      100.times do |i|
        beside = 10 + (i % names.size)
        events << [ns(10 * i), 1, :mark_begin, 1] << [ns((10 * i) + 2), 1, :suspended]
        events << [ns((10 * i) + 3), beside, :ready] << [ns((10 * i) + 3), beside, :resumed] << [ns((10 * i) + 4), beside, :suspended]
        events << [ns((10 * i) + 8), 1, :ready] << [ns((10 * i) + 8), 1, :resumed] << [ns((10 * i) + 9), 1, :mark_end, 1]
      end
      object = json_of("predict", write(encoder.events(*events).dropped(0, 0).end))
      assert_equal [["order", 100]], object["recorded"]["classes"].map { |kind| kind.values_at("name", "count") }
    end
  end
end
