# frozen_string_literal: true

require "test_helper"
require "headway/report"
require "report/made_trace"

# What a headline says of requests and jobs: what they waited for, who was too busy for them.
class HeadlineOfWorkTest < Minitest::Test
  include MadeTraces

  # Threads of a pool are all alike; what they were at is not.
  def test_work_says_more_than_threads
    assert_equal "`GET /` spent 60 % of its 10.0 s waiting for the GVL; 90 % of all waits were behind `Report#render` (app/report.rb:12), " \
                 "at `GET /report`. #{FAIR}", headline(MadeTraces.stalled(work: WORK))
    assert_equal "`GET /` spent 60 % of its 10.0 s waiting for the GVL. #{FAIR}", headline(MadeTraces.stalled(work: WORK, stacks: []))
    nameless = [{ **WORK.first, name: "" }]
    assert_match(/\Awork without a name spent 60 % .* \(app\/report\.rb:12\)\. /, headline(MadeTraces.stalled(work: nameless)))
  end

  # Six requests that waited for half a second together are no trouble where others waited for a hundred.
  def test_a_kind_of_work_that_was_little_is_no_example
    rare = { **WORK.first, name: "GET /rare", count: 6, running_s: 0.0 }
    said = ->(ready_s) { headline(MadeTraces.stalled(work: [*WORK, { **rare, total_s: 2 * ready_s / 1.9, ready_s: ready_s }])) }

    assert_match(/\A`GET \/` spent 60 % /, said[2.9])
    assert_match(/\A`GET \/rare` spent 95 % /, said[3.1])
  end

  # A collection before a worker's first request, say, which all threads of its pool wait for: no request did.
  def test_waits_of_a_servers_boot_are_no_waits_of_its_load
    none = { running_s: 0.0, ready_s: 0.0, suspended_s: 0.0, ready_batch_s: 0.0, waited_for: [] }
    boots = [{ **none, running_s: 1.2, ready_batch_s: 1.2 }, { **none, ready_s: 1.2, waited_for: [{ thread: 0, s: 1.2 }] }]
    said = lambda do |boots, ready_s|
      threads = [{ name: "main", segments: [[:running, 1.2], [:suspended, 1.0], [:running, ready_s], [:suspended, 7.8]], boot: boots.first },
                 { name: "reap", segments: [[:ready, 1.2], [:running, 1.0], [:ready, ready_s], [:suspended, 7.8]], boot: boots.last }]
      headline(MadeTrace.new(threads: threads, work: [{ **WORK.first, total_s: 1.0, ready_s: 0.0, running_s: 1.0 }]))
    end

    assert_match(/\Areap spent 55 % /, said[[], 0.002])
    assert_equal "Nobody waited to speak of since work began: 2.00 ms for the GVL over all threads.", said[boots, 0.002]
    assert_match(/\Areap spent 33 % of its 1.50 s under load waiting; 100 % of that behind main/, said[boots, 0.5])
  end

  # Nothing is seen of them, as there is nobody to be looked at.
  def test_of_waits_with_the_gvl_free_nobody_is_blamed
    late = MadeTrace.new(threads: [{ name: "late", segments: [[:ready, 0.85]] }]).to_h[:threads] # the others wait for 1.7 s
    said = lambda do |blamed|
      data = MadeTraces.stalled(work: [WORK.first, { **WORK.last, blamed: blamed }]).to_h
      Headway::Report::Headline.of({ **data, threads: data[:threads] + late })
    end

    assert_includes said[WORK.last[:blamed]], "; 60 % of all waits were behind `Report#render` (app/report.rb:12), at `GET /report`."
    assert_includes said[[]], "; 60 % of all waits were behind `Report#render` (app/report.rb:12), and by kind of work 60 % behind `GET /report`."
  end

  # The heaviest method needn't be what the heaviest kind of work was in, which may compute in several; nor need any method be heavy.
  def test_a_method_and_a_kind_of_work_that_need_not_have_met
    frames = Array.new(5) { |i| { method: "Label.part#{i}", file: "/srv/app/label.rb", line: i + 1 } }
    work = [WORK.first, { **WORK.last, blamed_s: 0.4 }, { **WORK.last, name: "GET /label", blamed_s: 0.6 }]
    said = lambda do |*weights_s|
      stacks = weights_s.each_with_index.map { |weight_s, i| { thread: 1, frames: [i], weight_s: weight_s, samples: 1 } }
      headline(MadeTraces.stalled(work: work, frames: frames, stacks: stacks))
    end

    assert_includes said[0.4, 0.3, 0.3], "; 40 % of all waits were behind `Label.part0` (app/label.rb:1), and by kind of work 60 % behind `GET /label`. "
    work[1][:blamed] = [{ frames: [1], s: 0.3 }, { frames: [0], s: 0.1 }]
    work[2][:blamed] = [{ frames: [2], s: 0.3 }, { frames: [0], s: 0.3 }]
    assert_includes said[0.4, 0.3, 0.3], "; 40 % of all waits were behind `Label.part0` (app/label.rb:1), mostly at `GET /label`. "
    assert_includes said[0.2, 0.2, 0.2, 0.2, 0.2], " waiting for the GVL; 60 % of all waits were behind `GET /label`. "
  end

  # A mark around something else is not what the trace is about; nor is work that hardly waited.
  def test_work_that_waited_for_little_of_it
    [[0.3, 0.1], [7.5, 0.007]].each do |total_s, ready_s| # three threads have no more time
      assert_match(/\Aworker-3 spent 52 % /, headline(MadeTraces.stalled(work: [{ **WORK.first, total_s: total_s, ready_s: ready_s }])))
    end
  end

  # A request that starts fifty threads, which wait for one another.
  def test_threads_that_work_starts_do_not_hide_it
    crowd = (0...50).map { |i| { name: "fetch-#{i}", segments: [[:ready, 0.9], [:running, 0.01], [:suspended, 9.0]] } }
    work = [{ name: "GET /", count: 90, total_s: 8.0, running_s: 0.5, ready_s: 4.0, computed_s: 0.0, blamed_s: 0.1 }]
    since = { wall_s: 9.0, running_s: 3.0, off_cpu_s: 0.0, gc_count: 0, gc_s: 0.0 }

    assert_match(/\A`GET \/` spent 50 % of its 8\.00 s waiting for the GVL/, headline(MadeTrace.new(threads: crowd, work: work, since_work: since)))
    assert_match(/\Afetch-\d+ spent /, headline(MadeTrace.new(threads: crowd, work: work)))
    assert_match(/\Afetch-\d+ spent /, headline(MadeTrace.new(threads: crowd, work: work, since_work: { **since, wall_s: 90.0 })))
    rarely = [{ **work.first, ready_s: 1.0 }]
    assert_match(/\Afetch-\d+ spent /, headline(MadeTrace.new(threads: crowd, work: rarely, since_work: since)))
  end

  # Whatever the policy: then it decides who goes first, not how much is done.
  def test_a_process_that_does_all_it_can
    since = { wall_s: 10.0, running_s: 9.3, off_cpu_s: 0.4, gc_count: 0, gc_s: 0.0 }
    full = "The GVL was held for 93 % of the time since work began, which is all that one process can do: more of them do more."

    assert_operator headline(MadeTraces.stalled(work: WORK, since_work: since)), :end_with?, "#{FAIR} #{full}"
    [{ **since, running_s: 8.9 }, { **since, off_cpu_s: 3.0 }, { **since, wall_s: 0.9, running_s: 0.9 }, nil].each do |other|
      refute_includes headline(MadeTraces.stalled(work: WORK, since_work: other)), "all that one process"
    end
    calm = MadeTrace.new(threads: [{ name: "web", segments: [[:running, 9.5], [:suspended, 0.5]] }], since_work: since)
    refute_includes headline(calm), "all that one process"
  end

  POOL = { threads: 5, count: 50, total_s: 40.0, work_s: 40.0, full_s: 33.2 }.freeze

  # Whoever looks for what requests wait for sees nothing of those that have no thread yet.
  def test_a_pool_that_was_full
    since = { wall_s: 60.0, running_s: 20.0, off_cpu_s: 0.0, gc_count: 0, gc_s: 0.0 }
    calm = { threads: [{ name: "web", segments: [[:running, 20.0], [:suspended, 40.0]] }], work: [{ **SLOW, count: 50 }], since_work: since }
    full = "For 83 % of the time in which there was work all 5 threads were at it: what else came waited for one of them, or for one " \
           "more to be started, which no trace shows. " \
           "`headway advise made.headway` says whether more threads help."
    said = ->(*pools, **others) { headline(MadeTrace.new(**calm, processes: pools.map { |pool| { file: "made.headway", pool: pool } }, **others)) }

    assert_operator said[POOL], :end_with?, full
    assert_includes said[{ **POOL, count: 45 }, nil, { **POOL, threads: 4, count: 45 }], " all 4 to 5 threads of a process were at it: "
    jobs = { threads: 10, count: 2_000, total_s: 100.0, work_s: 10.0, full_s: 10.0 }
    assert_includes said[{ **POOL, threads: 2, count: 10, work_s: 0.1, full_s: 0.0 }, jobs], " all 2 to 10 threads of a process were at it: ", "beside a server's process"
    [nil, { **POOL, threads: 1 }, { **POOL, full_s: 19.0 }, { **POOL, work_s: 0.9, full_s: 0.9 }].each { |other| refute_match(/were at it/, said[other]) }
    refute_match(/were at it/, said[{ **POOL, count: 49 }])
    refute_match(/were at it/, said[POOL, since_work: { **since, running_s: 54.0 }], "where the GVL is held, more threads do no more")
  end

  # A proxy in front, or a queue of jobs, knows since when.
  def test_work_that_stood_in_a_queue
    since = { wall_s: 60.0, running_s: 20.0, off_cpu_s: 0.0, gc_count: 0, gc_s: 0.0 }
    calm = { threads: [{ name: "web", segments: [[:running, 20.0], [:suspended, 40.0]] }], work: [SLOW] }
    queued = { count: 50, total_s: 20.0, max_s: 2.1 }
    said = lambda do |pool, *queues, **others|
      processes = queues.map { |queue| { file: "made.headway", pool: pool, queued: queue } }
      headline(MadeTrace.new(**calm, since_work: since, **others, processes: processes))
    end
    alone = " Before a thread took it, work stood in a queue for 400 ms on average and 2.10 s at the most."

    assert_includes said[POOL, queued], "or for one more to be started, 400 ms on average and 2.10 s at the most. `headway advise made.headway` says"
    idle = { **POOL, full_s: 1.0 }
    assert_operator said[idle, queued], :end_with?, alone
    assert_includes said[POOL, queued, since_work: { **since, running_s: 54.0 }], alone, "where the GVL is held, more threads do no more"
    assert_operator said[idle, queued, nil, { count: 1, total_s: 3.0, max_s: 3.0 }], :end_with?, "451 ms on average and 3.00 s at the most."
    refute_includes said[{ **idle, total_s: 240.0 }, queued], alone
    [nil, { count: 50, total_s: 9.0, max_s: 9.0 }].each { |queue| refute_match(/stood in a queue/, said[idle, queue]) }
    refute_match(/stood in a queue/, said[{ **idle, total_s: 1.0 }, { count: 50, total_s: 0.49, max_s: 0.4 }])
  end

  # Of threads that hardly do anything, as a server's reactor, a little is much.
  def test_waits_that_are_little_beside_what_work_spent_elsewhere_come_last
    reactor = { name: "reactor", segments: [[:ready, 0.1], [:running, 0.4], [:suspended, 19.5]] }
    cpu = { name: "cpu", segments: [[:running, 0.1], [:suspended, 19.9]] }
    said = ->(total_s) { headline(MadeTrace.new(threads: [reactor, cpu], work: [{ **SLOW, total_s: total_s, ready_s: 0.001 }])) }

    assert_match(/\A`GET \/slow` spent 90 % of its 5\.00 s .*\. reactor spent \d+ % of its 500 ms under load waiting/, said[5.0])
    assert_match(/\Areactor spent \d+ % of its 500 ms under load waiting.*\. `GET \/slow` spent 74 % of its 1\.90 s /, said[1.9])
    assert_equal "Nobody waited to speak of: 100 ms for the GVL over all threads, 100 ms at most at a time. `GET /slow` spent 97 % of its 20.0 s #{ELSEWHERE}", said[20.0]
  end

  # A fifth of the time that the GVL was held, which is a hundredth of all.
  def test_a_holder_on_no_processor_for_little_of_the_time
    since = { wall_s: 5.0, running_s: 0.5, off_cpu_s: 0.1, gc_count: 0, gc_s: 0.0 }

    assert_includes headline(MadeTraces.single(work: [SLOW], since_work: since)), "For 20 % of the time that the GVL was held since work began (100 ms)"
    refute_includes headline(MadeTraces.single(work: [SLOW], since_work: { **since, wall_s: 20.0 })), "no processor"
  end

  def test_what_work_spent_without_the_gvl
    calm = MadeTrace.new(threads: [{ name: "web", segments: [[:running, 0.5], [:suspended, 19.5]] }], work: [SLOW])

    assert_equal "Only one thread ran, so nobody waited. `GET /slow` spent 97 % of its 20.0 s #{ELSEWHERE}", headline(calm)
    assert_equal "`GET /` spent 60 % of its 10.0 s waiting for the GVL; 90 % of all waits were behind `Report#render` (app/report.rb:12), " \
                 "at `GET /report`. #{FAIR} `GET /slow` spent 97 % of its 20.0 s #{ELSEWHERE}", headline(MadeTraces.stalled(work: [*WORK, SLOW]))
    refute_includes headline(MadeTraces.stalled(work: [*WORK, { **SLOW, total_s: 2.0 }])), ELSEWHERE
  end

  # The thread of Ruby's timeouts, say, as it is woken for each query.
  def test_a_wait_that_gets_no_advice_comes_after_that
    timer = { name: "timer", segments: [[:ready, 0.02], [:suspended, 0.98]] }
    cruncher = { name: "crunch", segments: [[:running, 0.9], [:suspended, 0.1]] }
    slow = { **SLOW, total_s: 1.9, running_s: 0.05, ready_s: 0.01 } # two threads have no more time
    said = headline(MadeTrace.new(threads: [timer, cruncher], work: [slow]))

    assert_match(/\A`GET \/slow` spent 97 % .* without the GVL\. timer spent 2\.0 % of its time waiting; /, said)
  end

  def test_work_that_computes_takes_turns
    work = [{ name: "Crunch", count: 10, total_s: 10.0, running_s: 5.0, ready_s: 4.9, computed_s: 0.0, blamed_s: 4.0 }]

    assert_match(/\AOnly work that computes waited, and for its like \(`Crunch`: 49 % of its time\): one GVL is one CPU/,
                 headline(MadeTraces.stalled(work: work)))
    brief = [{ **work.first, count: 5000 }]
    assert_match(/\A`Crunch` spent 49 % /, headline(MadeTraces.stalled(work: brief)))
  end

  # Of a server's 10 s its boot took 8, slowly and with garbage.
  def test_a_boot_is_no_load
    threads = [{ name: "main", segments: [[:running, 8.0], [:suspended, 2.0]] }, { name: "web", segments: [[:suspended, 8.0], [:running, 1.0], [:suspended, 1.0]] }]
    since = { wall_s: 2.0, running_s: 1.0, off_cpu_s: 0.05, gc_count: 2, gc_s: 0.05 }
    boot = { threads: threads, gc: [[0, 0.0, 3.0]], off_cpu_s: 4.0 }

    refute_match(/Garbage|processor/, headline(MadeTrace.new(since_work: since, **boot)))
    said = headline(MadeTrace.new(since_work: { **since, off_cpu_s: 0.5, gc_s: 0.25 }, **boot))

    assert_includes said, "For 50 % of the time that the GVL was held since work began (500 ms), the holder was on no processor: "
    assert_includes said, "Garbage collection took 25 % of the 1.00 s under load since work began (250 ms in 2 stops), and no thread could run meanwhile."
    said = headline(MadeTrace.new(since_work: { **since, wall_s: 1.0, gc_count: 1, gc_s: 0.25 }, **boot))

    assert_includes said, "Garbage collection took 25 % of the time since work began (250 ms in 1 stop), and no thread could run meanwhile."
  end
end
