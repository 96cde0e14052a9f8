# frozen_string_literal: true

require_relative "recorded"
require "headway/advise"

# `headway advise`.
class AdviseTest < PredictCase
  def test_a_setting_that_meets_the_slo_is_already_right
    path = orders(500, pause_ms: 50)
    status, out, = run_cli("advise", path, "--slo", "p99=20ms")

    assert_equal 0, status
    assert_match(/\AYour setting is already right: 1 x 1 stock, quantum 100 ms, it meets p99=20ms\.$/, out)
    refute_match(/^[-+]{3}/, out)
    object = json_of("advise", path, "--slo", "p99=20ms")
    assert_equal [true, true, ""], object.values_at("already_right", "met", "diff")
    assert_equal 100.0, object.dig("recommended", "sure_pct")
  end

  # Of 26 ms each, 20 passed until the system let a thread run that nobody was in the way of.
  def test_an_slo_that_was_missed_as_recorded_is_said_to_be
    encoder = TraceEncoder.new(policy: "observe").strings(1 => "order").thread(1, "worker")
    events = (0...500).flat_map do |i|
      at = i * 100
      [[ns(at), 1, :ready], [ns(at), 1, :resumed], [ns(at), 1, :mark_begin, 1], [ns(at + 1), 1, :suspended], [ns(at + 5), 1, :ready],
       [ns(at + 25), 1, :resumed], [ns(at + 26), 1, :mark_end, 1], [ns(at + 26), 1, :suspended]]
    end
    path = write(encoder.events(*events).dropped(0, 0).end)
    ["p99=20ms", "order:p99=20ms"].each do |slo|
      _, out, = run_cli("advise", path, "--slo", slo)
      assert_match(/\AYour setting is already right: 1 x 1 stock, quantum 100 ms, it meets #{slo}, though not as recorded\.$/, out)
      assert_match(/^Note: what the current setting meets as simulated it missed as recorded, with #{slo[/.*(?==)/]} of 26\.0 ms, not \d+\.\d: /, out)
    end
    assert_empty json_of("advise", path, "--slo", "p99=30ms")["cautions"].grep(/missed/)
  end

  # Where a container sets none, what is typed are bytes.
  def test_a_class_is_named_in_whatever_locale
    path = write(one_thread(500, names: { 1 => "größer" }, pause_ms: 50) { [1, 1, 4, 1] })
    ["größer:p99=20ms", "größer:p99=20000µs"].each do |typed|
      [typed, typed.b, typed.encode("ISO-8859-1")].each do |text|
        assert_equal [["größer:p99=20ms"], true], json_of("advise", path, "--slo", text).values_at("slo", "met")
      end
    end
    assert_bad_usage(/--slo is "\?": give mean/, "advise", path, "--slo", "\xff".b)
  end

  def test_the_cheapest_setting_that_meets_the_slo_is_advised
    object = json_of("advise", mixed, "--rate", "80", "--slo", "light:p95=15ms")

    assert object["met"]
    refute object["already_right"]
    refute object.dig("current", "meets")
    recommended = object["recommended"]
    assert_equal "fair", recommended["policy"]
    assert_operator recommended["classes"].find { |kind| kind["name"] == "light" }.dig("p95_ms", "median"), :<=, 15
    assert_equal({ "HEADWAY_POLICY" => "fair" }, object["environment"])
    assert_empty object["diff"] # an environment is no file
    assert_equal "set in the environment: HEADWAY_POLICY=fair", object["steps"].first
  end

  # As much is done by one thread as by many, each of which takes as many times as long.
  def test_jobs_that_only_compute_want_one_thread_for_each_core
    object = json_of("advise", write(one_thread(60) { [1, 30_000, 0, 0] }))

    assert_equal [2, 1], object["recommended"].values_at("processes", "threads")
    assert_in_delta 2, object.dig("recommended", "requests_per_s", "median") / object.dig("current", "requests_per_s", "median"), 0.1
  end

  # Each waits for 80 ms of its 100: two cores have room for more than two.
  def test_of_a_server_with_one_thread_a_process_only_processes_are_advised
    { "/srv/bin/unicorn -c unicorn.rb" => :request, "/srv/bin/rake resque:work" => :job }.each do |command, span|
      path = write(one_thread(500, command:, span:, cpus: 2) { [1, 10, 80, 10] })
      out = run_cli("advise", path)[1]
      object = json_of("advise", path)

      assert_equal 1, object.dig("recommended", "threads"), command
      assert_operator object.dig("recommended", "processes"), :>, 2
      assert_match(/^Note: (?:Unicorn|Resque) does one #{span} at a time in each process, so that only numbers of processes are advised/, out)
      refute_match(/threads instead/, out)
    end
    refute_match(/at a time in each process/, run_cli("advise", orders)[1])
  end

  def test_an_slo_that_cannot_be_met_is_answered_with_the_best_that_can_be
    object = json_of("advise", orders, "--rate", "10", "--slo", "p50=5ms")
    assert_equal false, object["met"]

    _, out, = run_cli("advise", orders, "--rate", "10", "--slo", "p50=5ms")
    assert_match(/\ANo setting meets p50=5ms\. About the best that can be is .*, with a p50 of 6\.0 ms\.$/, out)
    _, out, = run_cli("advise", orders, "--rate", "90000")
    assert_match(/\ANo setting keeps up with 90000 requests a second/, out)
  end

  # Of the same threads and processes: a change of policy costs nothing.
  def test_of_what_does_not_meet_it_the_best_is_advised_not_what_is_changed_least
    path = write(one_thread(400, names: { 1 => "light", 2 => "heavy" }) { |i| i % 20 == 0 ? [2, 60, 1, 1] : [1, 0.2, 20, 0.2] })
    object = Dir.chdir(File.dirname(path)) { json_of("advise", path, "--rate", "60", "--slo", "p99=10ms") } # where there is no bundle

    assert_equal [false, "fair"], [object["met"], object.dig("recommended", "policy")]
    assert_equal "headway advise after --slo p99=10ms", object["verify"].last
  end

  # A heavy request takes 110 ms with any setting; the light ones would wait for a thread if there were few.
  def test_what_meets_nothing_with_fewer_threads_is_no_cheaper_where_it_takes_longer
    path = write(one_thread(400, names: { 1 => "light", 2 => "heavy" }, cpus: 1) { |i| i % 20 == 0 ? [2, 5, 100, 5] : [1, 0.2, 40, 0.2] })
    object = json_of("advise", path, "--rate", "40", "--slo", "heavy:mean=20ms")

    assert_equal false, object["met"]
    least = json_of("predict", path, "--rate", "40", "--threads", "8")["predictions"].last
    %w[mean_ms p50_ms p95_ms p99_ms].each do |key|
      assert_operator object.dig("recommended", key, "median"), :<=, 1.1 * least.dig(key, "median"), key
    end
  end

  # It waits 90 % of the time, but for the GVL: more threads would change nothing.
  def test_waiting_for_the_gvl_is_no_io
    object = json_of("advise", ten_in_turns)

    assert_includes object["rests_on"].join, "90 % waiting for the GVL, which is no I/O"
    assert_operator object.dig("recommended", "threads"), :<=, 10
    assert_in_delta 0, object.dig("recommended", "requests_per_s", "median") / object.dig("current", "requests_per_s", "median") - 1, 0.05
  end

  # A thread for each request, as some servers have.
  def test_threads_that_came_one_after_the_other_are_one
    encoder = TraceEncoder.new.strings(1 => "order")
    events = (1..5_000).flat_map do |i|
      [[ns(10 * i), i, :resumed], [ns(10 * i), i, :mark_begin, 1], [ns((10 * i) + 2), i, :mark_end, 1], [ns((10 * i) + 2), i, :exited]]
    end
    events.each_slice(10_000) { |slice| encoder.events(*slice) }
    assert_equal 1, json_of("advise", write(encoder.dropped(0, 0).end))["current"]["threads"]
  end

  # As of an application whose many routes are asked for a few times each. With one thread most requests would wait for it.
  def test_where_each_class_is_too_rare_all_requests_together_are_judged
    encoder = TraceEncoder.new(policy: "observe", cpus: 1).strings((1..60).to_h { |i| [i, "GET /#{i}"] })
    events = (0...300).flat_map do |i|
      request(30 * i, thread: 1 + (i % 4), name: 1 + (i % 60), burst_ms: 0.5, back_ms: 24)
    end
    object = json_of("advise", write(encoder.events(*events).dropped(0, 0).end))
    assert_equal 4, object["current"]["threads"]
    assert_operator object["recommended"]["threads"], :>=, 2
    assert_operator object.dig("recommended", "mean_ms", "median"), :<, 1.5 * object.dig("current", "mean_ms", "median")
  end

  # Five threads keep up, the two that are allowed don't.
  def test_where_nothing_that_is_allowed_keeps_up_it_says_so
    path = five_threads
    [[], ["--slo", "p99=150ms"]].each do |slo|
      status, out, = run_cli("advise", path, "--rate", "25", "--max-threads", "2", *slo)
      assert_equal 0, status
      assert_match(/\ANo setting keeps up with 25 requests a second: this needs more cores, threads or memory than are allowed\.$/, out)
      assert_match(/^recommended +1 x 2 .*too slow/, out)
    end
  end

  # It has five threads, of which three had something to do at a time.
  def test_no_more_threads_than_there_are_is_no_reason_for_doubt
    object = json_of("advise", five_threads, "--rate", "25", "--max-threads", "5")
    assert_equal 5, object.dig("recommended", "threads")
    assert_nil object["doubt"]
  end

  def test_memory_bounds_processes
    free = json_of("advise", mixed(cpus: 4))
    bounded = json_of("advise", mixed(cpus: 4), "--max-memory", "1G", "--process-memory", "600M")

    assert_operator free.dig("recommended", "processes"), :>, 1
    assert_equal 1, bounded.dig("recommended", "processes")
  end

  def test_more_threads_than_allowed_are_never_right
    object = json_of("advise", write(saturated), "--max-threads", "3")
    refute object["already_right"]
    assert_operator object.dig("recommended", "threads"), :<=, 3
  end

  def test_what_sidekiq_does_is_called_jobs
    path = mixed(span: :job, command: "sidekiq 8.0 app [0 of 5 busy]")
    [["advise", path, "--rate", "80"], ["advise", path, "--rate", "closed"], ["advise", path, "--rate", "90000"], ["predict", path, "--rate", "90000"]].each do |words|
      _, out, = run_cli(*words)
      assert_match(%r{jobs/s}, out)
      refute_match(/request|:;/, out)
    end
  end

  # The slowest of it does nobody any good: with fewer threads it would only do less.
  def test_what_no_setting_meets_is_no_reason_to_change
    object = json_of("advise", orders, "--slo", "p50=5ms")
    assert_equal [false, true, ""], object.values_at("met", "already_right", "diff")
  end

  # With two threads the p99 comes out a trifle better than with the ten there are, and the limit happens to lie between the two.
  def test_a_setting_that_is_no_surer_than_the_current_one_is_no_reason_to_change
    path = seldom_slow
    current = json_of("advise", path)["current"]
    assert_equal 10, current["threads"]
    slo = "p99=#{(current.dig("p99_ms", "median") - 0.01).round(3)}ms"
    object = json_of("advise", path, "--slo", slo)

    assert_equal [true, true, false, ""], [*object.values_at("met", "already_right"), object.dig("current", "meets"), object["diff"]]
    assert_match(/\ANo setting is clearly surer to meet #{slo} than yours, 1 x 10 stock, quantum 100 ms\.$/, run_cli("advise", path, "--slo", slo)[1])
  end

  def test_little_headroom_is_told
    object = json_of("advise", orders, "--rate", "145", "--max-threads", "1", "--max-memory", "1G", "--process-memory", "1G")
    assert_operator object.dig("recommended", "load_pct"), :>, 80
    assert_match(/^there is little headroom: 145 arrivals a second are \d\d % of what 1 x 1 /, object["cautions"].join("\n"))
    refute_match(/headroom/, json_of("advise", orders, "--rate", "50", "--max-threads", "1")["cautions"].join)
  end

  # One client that waits for its answers keeps a thread as busy as many at random would, but never queues.
  def test_a_current_setting_that_comes_out_far_worse_than_recorded_is_told
    said = /^the current setting comes out at \d\d ms a request, where 6 were recorded: .*--rate closed/
    path = orders(500, pause_ms: 0.8)

    assert_match said, json_of("advise", path)["cautions"].join("\n")
    refute_match said, json_of("advise", path, "--rate", "closed")["cautions"].join("\n")
    refute_match said, json_of("advise", path, "--rate", "140")["cautions"].join("\n")
    refute_match said, json_of("advise", orders(500, pause_ms: 50))["cautions"].join("\n")
  end

  # What stands in front of it is part of what was recorded, where that is known: then it comes out as it was.
  def test_what_requests_stood_in_a_queue_is_compared_with_what_they_would
    much, little, nothing = [20, 2, nil].map { |queued_ms| json_of("advise", orders(500, pause_ms: 0.8, queued_ms:)) }
    refute_match(/comes out at/, much["cautions"].join("\n"))
    assert_match(/^the current setting comes out at \d\d ms a request, where 8 were recorded: /, little["cautions"].join("\n"))
    assert_equal [nothing.except("cautions")] * 2, [much, little].map { |object| object.except("cautions") }
  end

  # What nobody knows of threads that are always busy: whether clients wait for their answers. But how many came, where requests stood in a
  # queue, is as many as were done.
  def test_requests_that_stood_in_a_queue_before_threads_that_were_always_busy_are_told
    said = /^(?:Note: )?requests stood in a queue for 30 ms on average before one of the threads, .* --rate 166\.7 tells .*random\.?$/
    path = orders(queued_ms: 30, name: "queued.headway")
    %w[advise predict].each do |command|
      assert_match said, run_cli(command, path)[1]
      assert_match said, json_of(command, path)["cautions"].join("\n")
      refute_match(/stood in a queue/, run_cli(command, path, "--rate", "100")[1])
      refute_match(/stood in a queue/, run_cli(command, orders(queued_ms: 1))[1])
    end
  end

  # A job that waits until somebody has time for it is none of so many a second, whoever runs it.
  def test_jobs_that_stood_in_a_queue_are_not_told
    path = orders(queued_ms: 30, span: :job, command: "/srv/bin/good_job start")
    %w[advise predict].each do |command|
      out = run_cli(command, path)[1]
      refute_match(/stood in a queue|request/, out)
      assert_match(%r{ jobs(?: a second|/s)}, out)
    end
    assert_match(/requests stood in a queue/, run_cli("predict", orders(queued_ms: 30, span: :request, command: "/srv/jobs/bin/puma: jobs"))[1])
  end

  # As beside a load generator: the GVL is never free, and the threads wait for their clients meanwhile.
  def test_a_current_setting_that_comes_out_too_slow_for_what_it_did_is_told
    encoder = TraceEncoder.new(policy: "observe", cpus: 1).strings(1 => "order")
    events = (0...500).flat_map do |i|
      begun, ended = [10 * i, 10 * (i + 1)].map { |time| ns(time) }
      thread = 1 + (i % 2)
      [[begun, thread, :ready], [begun, thread, :resumed], [begun, thread, :mark_begin, 1], [ended, thread, :mark_end, 1], [ended, thread, :suspended]]
    end
    path = write(encoder.events(*events).dropped(0, 0).end)

    assert_match(/^the current setting comes out too slow for as many requests as were recorded: .*--rate closed/, json_of("advise", path)["cautions"].join("\n"))
    assert_match(/^Note: too slow: .*--rate closed/, run_cli("predict", path)[1])
    refute_match(/--rate closed/, run_cli("predict", path, "--rate", "150")[1])
  end

  # Most bootstrap samples have none of it.
  def test_an_slo_of_a_very_rare_class_beside_one_of_all
    path = write(one_thread(20_000, names: { 1 => "light", 2 => "rare" }) { |i| [i % 2_000 == 0 ? 2 : 1, 1, 4, 1] })
    object = json_of("advise", path, "--slo", "p99=20ms,rare:mean=20ms", "--max-threads", "1")
    assert object["met"]
    assert_equal 100.0, object.dig("recommended", "sure_pct")
  end

  def test_without_an_slo_it_says_how_surely_it_is_better
    object = json_of("advise", mixed, "--rate", "50")
    refute object["already_right"]
    assert_operator object.dig("recommended", "sure_pct"), :>=, 70
    assert_nil object.dig("current", "sure_pct")
  end

  # Of threads that only compute one does as much as ten, and each request sooner.
  def test_where_as_much_is_done_what_takes_less_time_is_better
    recommended, current = json_of("advise", ten_in_turns).values_at("recommended", "current")
    assert_operator recommended["threads"], :<, current["threads"]
    assert_operator recommended.dig("mean_ms", "max"), :<, current.dig("mean_ms", "min")
    assert_equal 100.0, recommended["sure_pct"]
  end

  # As with a pool of two connections: 100 ms each, however few are under way, is what the model takes from it.
  def test_many_more_requests_at_a_time_are_not_surely_better_where_all_they_do_is_wait
    path = write(one_thread(400) { [1, 0.2, 100, 0.2] })
    object = json_of("advise", path, "--cores", "2")
    assert_match(/\Aup to \d+ requests would be under way at a time, instead of 1: if they wait for a pool of connections, /, object["doubt"])

    _, out, = run_cli("advise", path, "--cores", "2")
    assert_match(/\ATry .*, instead of 1 x 1 stock/, out)
    assert_match(/^How sure: unsure, as up to /, out)
    assert_nil json_of("advise", path, "--max-threads", "1", "--cores", "1")["doubt"]
  end

  # However few more there would be, and wherever else the recording gives no reason for doubt.
  def test_requests_that_wait_for_other_threads_are_not_surely_better_off_with_more_threads
    held_up = "100 % of the delays are waits for other threads, most of them in `Shop#price` (app/shop.rb:12), at `Thread::Mutex#synchronize`: " \
              "where that is a lock or a pool of connections, more threads gain nothing"
    path, asleep = { "mutex" => "Thread::Mutex#synchronize", "sleep" => "Kernel#sleep" }.map do |name, call|
      write(one_thread(400, blocked_at: call) { [1, 0.2, 100, 0.2] }, name)
    end
    object = json_of("advise", path, "--cores", "1", "--max-threads", "2")
    assert_equal [2, held_up], [object.dig("recommended", "threads"), object["doubt"]]
    refute_includes object["cautions"], held_up
    _, out, = run_cli("advise", path, "--cores", "1", "--max-threads", "2")
    assert_match(/\ATry 1 x 2 stock/, out)
    assert_includes out, "\nHow sure: unsure, as #{held_up}. With delays as recorded: better than"

    stays = json_of("advise", path, "--cores", "1", "--max-threads", "1")
    assert_equal [nil, true], [stays["doubt"], stays["cautions"].include?(held_up)]
    assert_includes json_of("predict", path, "--threads", "2")["cautions"], held_up

    [json_of("advise", asleep, "--cores", "1", "--max-threads", "1"), json_of("predict", asleep, "--threads", "2")].each do |other|
      assert_empty other["cautions"].grep(/other threads/)
    end
  end

  # As of Logger's lock, whose holder waits for the GVL behind one that computes: delays are replayed as they were.
  def test_another_policy_is_not_surely_better_where_who_has_a_lock_waits_for_the_gvl
    gain = "another policy may gain far more or less than is predicted, as"
    locked, joined = [", and #{gain} who has it", ": #{gain} these"].map { |why| /are waits for other threads, .*#{why} waited for the GVL\z/ }
    { ["Thread::Mutex#synchronize", 5] => locked, ["Thread::Mutex#synchronize", 0] => nil,
      ["Thread#value", 5] => joined, ["Thread#value", 0] => nil }.each do |(call, ready_ms), held_up|
      encoder = TraceEncoder.new(policy: "observe").strings(1 => "order", 2 => call, 3 => "<cfunc>", 4 => "Shop#price", 5 => "app/shop.rb")
      encoder.thread(1, "worker").frames(1 => [2, 3, 0], 2 => [4, 5, 12]).stacks(1 => [1, 2])
      events = 400.times.flat_map do |i|
        at = 30 * i
        [[ns(at), 1, :resumed], [ns(at), 1, :mark_begin, 1], [ns(at + 1), 1, :suspended], [ns(at + 10), 2, :ready], [ns(at + 10), 2, :resumed],
         [ns(at + 22 - ready_ms), 1, :ready], [ns(at + 22), 2, :suspended], [ns(at + 22), 1, :resumed],
         [ns(at + 22), 1, :blocked, 1], [ns(at + 23), 1, :mark_end, 1], [ns(at + 23), 1, :suspended]]
      end
      workload = Headway::Workload.open(write(encoder.events(*events).dropped(0, 0).end, "#{call.downcase.delete("^a-z")}#{ready_ms}.headway"))
      grounds, recorded = Headway::Predict::Grounds.new(workload), Headway::Predict.recorded(workload)
      doubts = [recorded, recorded.with(policy: :fair), recorded.with(quantum_ms: 10)].map { |setting| grounds.doubt_of(setting) }

      held_up ? assert_equal([false, true, true], doubts.map { |doubt| held_up.match?(doubt.to_s) }) : assert_empty(doubts.compact)
      assert_equal !held_up.nil?, grounds.cautions.any?(held_up || (call.include?("Mutex") ? /another policy/ : /other threads/))
    end
  end

  # Stacks tell of waits inside of Ruby, for a Mutex, but not outside.
  def test_where_what_is_waited_for_is_saturated_no_setting_helps
    status, out, = run_cli("advise", write(saturated))
    assert_equal 0, status
    assert_match(/\ANo setting helps: what is waited for \(a pool of connections, a Mutex, a busy database\) is saturated\. Leave yours, 1 x 4 stock/, out)
  end

  def test_bad_usage_is_one_line
    path = orders
    assert_bad_usage(/no trace file/, "advise")
    assert_bad_usage(/--slo is "p9=5": give mean, p50, p95 or p99 and a time, such as p99=50ms/, "advise", path, "--slo", "p9=5")
    assert_bad_usage(/--slo is "": give mean/, "advise", path, "--slo", "")
    assert_bad_usage(/--slo is "p99=50": give .* and a time, such as p99=50ms/, "advise", path, "--slo", "mean=1s,p99=50")
    assert_bad_usage(/--slo is "p99=0ms"/, "advise", path, "--slo", "p99=0ms")
    assert_bad_usage(/--slo is "p99=9+ms": give mean/, "advise", path, "--slo", "p99=#{"9" * 400}ms")
    assert_bad_usage(/--max-memory is "9+G": give a size/, "advise", path, "--max-memory", "#{"9" * 400}G", "--process-memory", "1G")
    assert_bad_usage(/--slo names "cart": the trace has order/, "advise", path, "--slo", "cart:p99=5ms")
    assert_bad_usage(/only 100 such requests/, "advise", orders(100), "--slo", "p99=5ms")
    assert_bad_usage(/--max-memory is "2X": give a size/, "advise", path, "--max-memory", "2X")
    assert_bad_usage(/--max-memory needs --process-memory/, "advise", path, "--max-memory", "2G")
    assert_bad_usage(/--process-memory needs --max-memory/, "advise", path, "--process-memory", "300M")
    assert_bad_usage(/less than one process takes/, "advise", path, "--max-memory", "1M", "--process-memory", "2M")
    assert_bad_usage(/an argument is no valid UTF-8 text/, "advise", path, "--slo", "p99=\xFF")
    assert_bad_usage(/an argument is no valid UTF-8 text/, "advise", "\xFF")
    assert_bad_usage(/--rate is "1,2": give one/, "advise", path, "--rate", "1,2")
    status, _, err = run_cli("advise", orders(5))
    assert_equal 1, status
    assert_match(/can't advise from this trace: there are only 5/, err)
  end

  private

  # Events of a request of two bursts, of which the second begins back_ms later; what follows it takes as long as they do.
  def request(at, thread:, name:, burst_ms:, back_ms:)
    back = at + back_ms
    [[ns(at), thread, :ready], [ns(at), thread, :resumed], [ns(at), thread, :mark_begin, name], [ns(at + burst_ms), thread, :suspended],
     [ns(back), thread, :ready], [ns(back), thread, :resumed], [ns(back + burst_ms), thread, :mark_end, name],
     [ns(back + (2 * burst_ms)), thread, :suspended]]
  end

  # Ten threads, each of which has the GVL for 5 of 50 ms.
  def ten_in_turns
    encoder = TraceEncoder.new(policy: "observe", cpus: 1).strings(1 => "job")
    events = (1..10).map { |thread| [ns(0), thread, :known, 1] }
    400.times do |i|
      thread = (i % 10) + 1
      at = i * 5
      events << [ns(at), thread, :resumed]
      events << [ns(at), thread, :mark_end, 1] if i >= 10
      events << [ns(at), thread, :mark_begin, 1] << [ns(at + 5), thread, :preempted]
    end
    write(encoder.events(*events).dropped(0, 0).end)
  end

  # Each request takes 102 ms, 100 of them a delay; one comes every 40 ms.
  def five_threads
    encoder = TraceEncoder.new(policy: "observe", cpus: 1).strings(1 => "order")
    events = (0...500).flat_map do |i|
      request(40 * i, thread: 1 + (i % 5), name: 1, burst_ms: 1, back_ms: 101)
    end
    write(encoder.events(*events.sort_by.with_index { |event, i| [event.first, i] }).dropped(0, 0).end)
  end

  # Ten threads, one request at a time; one in twelve computes for longer.
  def seldom_slow
    random = Random.new(3)
    encoder = TraceEncoder.new(policy: "observe", cpus: 1).strings(1 => "order")
    events = (0...450).flat_map do |i|
      request(1_200 * i, thread: 1 + (i % 10), name: 1, burst_ms: i % 12 == 0 ? 8 + (15 * random.rand) : 0.2, back_ms: 30)
    end
    write(encoder.events(*events).dropped(0, 0).end)
  end

  # Four threads at a database with one connection: the first waits for 10 ms, the second for 20, and so on.
  def saturated
    encoder = TraceEncoder.new(policy: "observe").strings(1 => "order")
    events = (1..4).map { |thread| [ns(0), thread, :known, 0] }
    400.times do |round|
      at_ms = round * 100.0
      count = (round % 4) + 1
      (1..count).each { |thread| events << [ns(at_ms), thread, :resumed] << [ns(at_ms), thread, :mark_begin, 1] << [ns(at_ms += 0.1), thread, :suspended] }
      (1..count).each do |thread|
        at_ms = (round * 100) + (10.0 * thread)
        events << [ns(at_ms), thread, :resumed] << [ns(at_ms + 0.1), thread, :mark_end, 1] << [ns(at_ms + 0.1), thread, :suspended]
      end
    end
    encoder.events(*events).dropped(0, 0).end
  end
end
