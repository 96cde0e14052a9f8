# frozen_string_literal: true

require_relative "recorded"

# `headway predict` and `advise` where no requests are marked.
class PredictUnmarkedTest < PredictCase
  def test_threads_without_marks_are_replayed_as_they_are
    encoder = TraceEncoder.new(policy: "observe").thread(1, "poller").thread(2, "main")
    events = [[ns(0), 1, :known, 2], [ns(0), 2, :known, 0]]
    100.times { |i| events << [ns((i * 10) + 2), 1, :suspended] << [ns((i + 1) * 10), 1, :ready] << [ns((i + 1) * 10), 1, :resumed] }
    encoder.events(*events).dropped(0, 0).end
    object = json_of("predict", write(encoder), "--threads", "1,4")

    assert_equal ["poller"], object["recorded"]["classes"].map { |kind| kind["name"] }
    assert_in_delta 100, object["predictions"].first.dig("requests_per_s", "median"), 1
    assert_operator object["predictions"].last.dig("requests_per_s", "median"), :>, 350
    assert_match(/no requests are marked/, object["cautions"].first)
  end

  # Four at a lock that each holds for 5 ms: however many there are, no more gets done.
  def test_without_marks_threads_that_wait_for_a_lock_are_not_surely_better_off_with_more_of_them
    { "Thread::Mutex#synchronize" => "unsure", "Net::HTTP#get" => "sure" }.each do |call, how_sure|
      encoder = TraceEncoder.new(policy: "observe").strings(1 => call, 2 => "<cfunc>", 3 => "Cache#fetch", 4 => "app/cache.rb")
      encoder.frames(1 => [1, 2, 0], 2 => [3, 4, 9]).stacks(1 => [1, 2])
      (1..4).each { |number| encoder.thread(number, "worker #{number}") }
      events = 400.times.flat_map do |i|
        number = 1 + (i % 4)
        [[ns(5 * i), number, :ready], [ns(5 * i), number, :resumed], [ns(5 * i), number, :blocked, 1], [ns((5 * i) + 1), number, :suspended]]
      end
      object = json_of("advise", write(encoder.events(*events).dropped(0, 0).end, "#{how_sure}.headway"), "--cores", "1", "--max-threads", "8")

      assert_equal 8, object.dig("recommended", "threads")
      said = /\A100 % of the delays are waits for other threads, most of them in `Cache#fetch` \(app\/cache.rb:9\), at `Thread::Mutex#synchronize`: /
      how_sure == "unsure" ? assert_match(said, object["doubt"]) : refute_match(/waits for other threads/, object["doubt"].to_s)
    end
  end

  # One after the other, each 2 x 1 ms in 20; between two of them nobody is there for 5.
  def test_without_marks_threads_that_follow_one_another_are_one
    encoder = TraceEncoder.new(policy: "observe")
    events = (1..100).flat_map do |number|
      encoder.thread(number, "", "import.rb:7")
      [[0, :resumed], [1, :suspended], [10, :resumed], [11, :suspended], [20, :resumed], [20, :exited]].map do |at_ms, kind|
        [ns((25 * number) + at_ms), number, kind]
      end
    end
    object = json_of("predict", write(encoder.events(*events).dropped(0, 0).end))

    assert_equal 1, object["recorded"]["threads"]
    assert_in_delta 1, object["predictions"].first.dig("requests_per_s", "median") / object["recorded"]["requests_per_s"], 0.03
    assert_in_delta 1, object["predictions"].first.dig("mean_ms", "median") / object["recorded"]["classes"].first["mean_ms"], 0.03
  end

  # Two forked ones that compute half of the time, and their parent, which waits for them: its file comes first, or last.
  def test_without_marks_a_process_that_only_waits_counts_as_none
    { "a" => 0, "b" => 50, "c" => 50 }.each_with_index do |(name, busy_ms), i|
      encoder = TraceEncoder.new(policy: "observe", pid: 100 + i).thread(1, name == "a" ? "parent" : "child")
      events = [[ns(0), 1, :known, 2], [ns(1), 1, :suspended]]
      100.times { |k| events << [ns(100 * (k + 1)), 1, :resumed] << [ns((100 * (k + 1)) + busy_ms), 1, :suspended] } if busy_ms.positive?
      write(encoder.events(*events, [ns(10_100), 1, :known, 0]).dropped(0, 0).end, "#{name}.headway")
    end
    %w[a.headway z.headway].each do |parent|
      File.rename(File.join(@directory, "a.headway"), File.join(@directory, parent))
      object = json_of("predict", @directory)

      assert_equal [2, 1, ["child"]], [*object["recorded"].values_at("processes", "threads"), object["recorded"]["classes"].map { |kind| kind["name"] }]
      assert_in_delta 1, object["predictions"].first.dig("requests_per_s", "median") / object["recorded"]["requests_per_s"], 0.03
    end
  end

  # Of its boot alone, in which only the main thread runs.
  def test_a_server_is_known_by_its_command_too
    { "/srv/bin/sidekiq -c 10" => true, "puma: cluster worker 0: 42 [shop]" => true, "ruby sidekiq_report.rb" => false,
      "/srv/bin/unicorn -c unicorn.rb" => true, "pitchfork (gen:1) worker[0] - waiting" => true, "/srv/bin/rake resque:work" => true,
      "rake resque:workers_report" => false, "/srv/bin/good_job start" => true, "bin/jobs start" => true, "solid-queue-worker(1.7.2): waiting" => true,
      "/srv/bin/que ./app.rb" => true, "bin/jobs_report" => false }.each do |command, refused|
      encoder = TraceEncoder.new(command:).thread(1, "main")
      events = (1..100).flat_map { |i| [[ns(i * 10), 1, :resumed], [ns((i * 10) + 8), 1, :suspended]] }
      status, _, err = run_cli("advise", write(encoder.events(*events).dropped(0, 0).end))

      assert_equal refused, status != 0 && err.include?("no requests are marked, which a server's trace needs"), err
    end
  end

  # The one that takes requests is not to be told from the one that only sleeps.
  def test_a_server_s_trace_without_marks_is_refused
    encoder = TraceEncoder.new(policy: "observe").thread(1, "puma srv tp 001")
    events = [[ns(0), 1, :known, 2]]
    100.times { |i| events << [ns((i * 10) + 2), 1, :suspended] << [ns((i + 1) * 10), 1, :ready] << [ns((i + 1) * 10), 1, :resumed] }
    path = write(encoder.events(*events).dropped(0, 0).end)
    %w[predict advise].each do |command|
      status, out, err = run_cli(command, path)
      assert_equal [1, ""], [status, out]
      assert_match(/\Aheadway: can't #{command} from this trace: no requests are marked, which a server's trace needs: .*Headway::Rack.*\n\z/, err)
    end
  end

  # Killed before a name was written: it may be a server's.
  def test_a_trace_cut_short_before_its_names_is_refused
    events = [[ns(0), 1, :known, 2]]
    100.times { |i| events << [ns((i * 10) + 2), 1, :suspended] << [ns((i + 1) * 10), 1, :ready] << [ns((i + 1) * 10), 1, :resumed] }
    path = write(TraceEncoder.new(policy: "observe").events(*events))
    %w[predict advise].each do |command|
      status, out, err = run_cli(command, path)
      assert_equal [1, ""], [status, out]
      assert_match(/\Aheadway: can't #{command} from this trace: it was cut short before it had its threads' names, .*\n\z/, err)
    end
    assert_equal 0, run_cli("predict", write(TraceEncoder.new(policy: "observe").thread(1, "main").events(*events), "named.headway")).first
  end
end
