# frozen_string_literal: true

require "harness/trap_test"

# Headway.thread_account and Headway::Work: what a thread did between two moments.
class AccountTest < Harness::TrapTest
  test_under %i[fair_signal quantum_signal observe], "an account adds up to the clock" do
    before, first, after = now, Headway.thread_account, now
    beside_cpu_threads(2) { 5.times { sleep 0.002 } }
    compute(0.01)
    shortest, second, longest = now - after, Headway.thread_account, now - before
    running, ready, suspended = first.zip(second).map { |from, to| to - from }
    assert_includes shortest..longest, running + ready + suspended
    assert_operator suspended, :>=, 0.0095
    assert_operator running, :>, 0.0
    assert_operator ready, :>, 0.0
  end

  def test_without_headway_there_is_none
    assert_nil Headway.thread_account
    work = Headway::Work.start(:job, "x")
    refute work.measured?
    work.finish
    assert_equal [0.0, 0.0, 0.0], work.times
    assert_operator work.wall, :>, 0
  end

  # As Rails copies what is in env, to filter it.
  def test_there_is_one_work_whoever_copies_it
    work = Headway::Work.start(:job, "x")
    [work.dup, work.clone, work.clone(freeze: true)].each { |copy| assert_same work, copy }
    work.finish
  end

  def test_an_account_makes_one_object
    with_headway(:observe) do
      Headway.thread_account
      GC.start
      GC.disable
      before = GC.stat(:total_allocated_objects)
      100.times { Headway.thread_account }
      each = 1.size < 8 ? 4 : 1 # with 32 bits its three times are objects, too
      assert_operator GC.stat(:total_allocated_objects) - before, :<=, each * 100 + 10
    ensure
      GC.enable
    end
  end

  def test_work_is_told_to_whoever_asked_and_a_fault_there_breaks_nothing
    with_headway do
      seen = []
      Headway::Work.subscribe { raise "broken" }
      asked = Headway::Work.subscribe { |work| seen << work }
      _, err = capture_io do
        2.times do
          work = Headway::Work.start(:job, "Mail")
          assert_same work, Headway::Work.current
          sleep 0.002
          work.add(:sql, 0.5, 0.25)
          work.finish
          assert_nil Headway::Work.current
        end
      end
      assert_equal 1, err.scan("a subscriber of Headway::Work failed").size, err
      assert_equal %w[Mail Mail], seen.map(&:name)
      assert_operator seen.first.suspended, :>=, 0.0015
      assert_includes 0.0015..seen.first.wall, seen.first.times.sum.round(9)
      assert_equal [1, 0.5, 0.25], seen.first.parts[:sql].to_a
      Headway::Work.unsubscribe(asked)
      Headway::Work.start(:job, "Mail").finish
      assert_equal 2, seen.size
    end
  end

  def test_a_subscriber_s_missing_file_or_method_breaks_nothing
    with_headway do
      missing = [-> { require "headway/no such file" }, -> { raise NotImplementedError }].map { |fault| Headway::Work.subscribe { fault.call } }
      capture_io { Headway::Work.start(:job, "Mail").finish }
      assert_nil Headway::Work.current
    ensure
      missing.each { |subscriber| Headway::Work.unsubscribe(subscriber) }
    end
  end

  def test_what_is_left_out_inside_of_something_left_out_ends_nothing
    Headway::Work.leave_out do
      Headway::Work.leave_out { assert_predicate Headway::Work, :left_out? }
      assert_predicate Headway::Work, :left_out?
    end
    refute_predicate Headway::Work, :left_out?
  end

  def test_it_is_known_on_which_thread_a_work_is
    work = Headway::Work.start(:job)
    assert_predicate work, :here?
    refute Thread.new { work.here? }.value
    work.finish
    refute_predicate work, :here?
  end

  def test_work_that_another_thread_finished_is_not_what_its_own_is_at_for_good
    with_headway do
      work = Headway::Work.start(:job, "Mail")
      Thread.new { work.finish }.join
      assert_nil Headway::Work.current
      refute_nil(request = Headway::Work.answer)
      request.finish
      Headway::Work.start(:job, "Post").finish
      assert_nil Headway::Work.current
    end
  end

  def test_what_an_application_asks_of_itself_while_it_answers_is_no_request_of_its_own
    assert_nil Headway::Work.answer # not started
    with_headway do
      request = Headway::Work.answer
      assert_equal [:request, nil], [request.kind, request.name]
      request.answering = true
      assert_nil Headway::Work.answer
      job = Headway::Work.start(:job, "Mail")
      assert_nil Headway::Work.answer # nor is one from within a job that it runs at once
      job.finish
      request.look # it has answered, and is sent
      second = Headway::Work.answer
      assert_same second, Headway::Work.current
    end
  end

  def test_on_another_thread_its_times_are_as_its_own_saw_them_last
    with_headway do
      work = Headway::Work.start(:job, "Mail")
      sleep 0.002
      assert_operator work.suspended, :>=, 0.0015
      seen = work.times
      Thread.new { sleep 0.01 }.join
      wall = Thread.new { assert_equal(seen, work.times) && work.finish && work.wall }.value
      assert_equal seen, work.times
      assert_operator wall, :>=, 0.0095
      assert_equal wall, work.wall
      assert_predicate work, :finished?
      work.finish(RuntimeError.new("late"))
      assert_nil work.error
    end
  end

  def test_works_outlive_their_threads_and_collections
    with_headway do
      works = Array.new(50) { Thread.new { Headway::Work.start(:job, "Mail").tap { sleep 0.0001 } }.value }
      GC.verify_compaction_references(toward: :empty, expand_heap: true) if GC.respond_to?(:verify_compaction_references)
      GC.stress = true
      works.each(&:finish)
      GC.stress = false
      works.each { |work| assert_operator work.wall, :>=, work.times.sum.round(9) }
    ensure
      GC.stress = false
    end
  end

  def test_the_statistics_sum_works_up
    with_headway(:observe) do
      assert_empty Headway.stats[:work]
      works = Array.new(3) { |i| Headway::Work.start(i.zero? ? :request : :job).tap { sleep 0.002 }.tap(&:finish) }
      outer = Headway::Work.start(:request)
      Headway::Work.start(:job).finish # part of the other
      outer.tap(&:finish).finish # which ends but once
      sums = Headway.stats[:work]

      assert_equal({ request: 2, job: 2 }, sums.transform_values { |sum| sum[:wait][:count] })
      assert_equal works.drop(1).sum(&:suspended).round(6), sums[:job][:suspended].round(6)
      assert_equal works.drop(1).map(&:waiting).max.round(6), sums[:job][:wait][:max].round(6)
      child = fork { exit! Headway.stats[:work].empty? }
      assert_predicate Process.wait2(child).last, :success?
    end
    with_headway(:observe) { assert_empty Headway.stats[:work] }
  end

  def test_the_sums_have_no_part_of_what_other_accounts_began_with
    works = nil
    with_headway(:observe) do
      works = Array.new(2) { Headway::Work.start(:request).tap { sleep 0.002 } }
      child = fork do
        works.each(&:finish)
        exit! Headway.stats[:work].empty?
      end
      assert_predicate Process.wait2(child).last, :success?
    end
    works.shift.finish
    assert_empty Headway.stats[:work]
    with_headway(:observe) do
      works.shift.finish
      assert_empty Headway.stats[:work]
    end
  end

  def test_fibers_that_share_a_thread_have_no_part_in_the_sums
    with_headway(:observe) do
      Thread.new do
        Fiber.set_scheduler(Headway::FiberScheduler.new)
        Fiber.schedule { Headway::Work.start(:request).finish }
      end.join
      assert_empty Headway.stats[:work]
    end
  end

  def test_a_work_is_a_request_or_a_job
    [nil, "job", :mail].each do |kind|
      error = assert_raises(ArgumentError) { Headway::Work.start(kind, "x") }
      assert_equal "#{kind.inspect}: :request or :job", error.message
    end
    assert_nil Headway::Work.current
  end

  def test_works_keep_what_they_are_told
    with_headway do
      works = Array.new(100) { |number| live(number) }
      GC.start
      GC.verify_compaction_references(toward: :empty, expand_heap: true) if GC.respond_to?(:verify_compaction_references)
      works.each.with_index do |work, number|
        assert_equal told(number), [work.kind, work.name, work.queue, work.queued, work.status, work.error.message, work.parts]
      end
    end
  end

  def test_how_long_a_work_stood_in_a_queue_is_what_somebody_says
    work = Headway::Work.start(:job, "x")
    assert_nil work.queued
    { 2 => 2.0, 0.25 => 0.25, -3 => 0.0, 1e300 => 1e300, nil => nil }.each do |said, known|
      work.queued = said
      known.nil? ? assert_nil(work.queued) : assert_equal(known, work.queued)
    end
    work.queued = 1.5
    [Float::NAN, Float::INFINITY].each do |said|
      assert_equal "#{said} seconds: give a finite number", assert_raises(ArgumentError) { work.queued = said }.message
    end
    ["1", :long, Object.new].each { |said| assert_raises(TypeError) { work.queued = said } }
    assert_equal 1.5, work.queued
  ensure
    work.finish
  end

  def test_a_new_start_in_between_takes_no_time_back
    with_headway do
      sleep 0.01
      work = Headway::Work.start(:job, "Mail")
      Headway.stop
      Headway.start
      assert(work.times.none?(&:negative?))
    end
  end

  def test_marks_that_are_no_blocks
    require "tmpdir"
    Dir.mktmpdir do |directory|
      file = File.join(directory, "out.headway")
      with_headway do
        assert_nil Headway::Native.begin_request("early")
        Headway::Recorder.start(file: file)
        outer = Headway::Native.begin_request("outer")
        inner = Headway::Native.begin_request(:inner)
        Headway::Native.end_mark(inner, nil)
        Headway::Native.end_mark(outer, nil)
        Headway::Native.end_mark(nil, nil)
        Headway::Recorder.stop
        Headway::Native.end_mark(outer, nil)
      end
      marks = Headway::Trace.open(file).to_h[:marks]
      assert_equal %w[inner outer], marks.map { |mark| mark[:name] }.sort
      marks.each { |mark| refute_nil mark[:end_s] }
    end
  end

  # As a query at the application's start is, which predictions took for a request.
  def test_a_part_is_a_span_and_no_work_of_its_own
    require "tmpdir"
    Dir.mktmpdir do |directory|
      file = File.join(directory, "out.headway")
      with_headway do
        Headway::Recorder.start(file: file)
        Headway::Native.end_mark(Headway::Native.begin_part("query"), nil)
        request = Headway::Native.begin_request("request")
        Headway::Native.end_mark(Headway::Native.begin_part("query"), nil)
        Headway::Native.end_mark(request, nil)
        Headway::Recorder.stop
      end
      read = Headway::Trace.open(file).to_h
      assert_equal %w[query query request], read[:marks].map { |mark| mark[:name] }.sort
      read[:marks].each { |mark| refute_nil mark[:end_s] }
      assert_equal [["request", 1]], read[:work].map { |work| work.values_at(:name, :count) }
      assert_equal ["request"], Headway::Workload.open(file).kinds.map(&:name)
    end
  end

  private

  def told(number)
    [%i[request job][number % 2], "work #{number}", "queue #{number}", number * 1e99, (1 << 64) + number, "error #{number}",
     { "part #{number}" => Headway::Work::Part.new(1, 0.5, 0.25) }]
  end

  def live(number)
    kind, name, queue, queued, status, error, parts = told(number)
    Headway::Work.start(kind, name).tap do |work|
      work.queue = queue
      work.queued = queued
      work.status = status
      work.add(parts.keys.first, 0.5, 0.25)
      work.finish(RuntimeError.new(error))
    end
  end
end
