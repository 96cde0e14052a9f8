# frozen_string_literal: true

require "tmpdir"
require "test_helper"
require "headway/report"
require "report/made_trace"

class HeadlineTest < Minitest::Test
  include MadeTraces

  OFFLOAD = " Under policy fair, `Headway.offload { ... }` around that lets the other fibers go on."

  def test_a_wait_is_put_down_to_the_method
    assert_equal "worker-3 spent 52 % of its time waiting; 82 % of that behind `Report#render` (app/report.rb:12). #{FAIR}",
                 headline(MadeTraces.stalled)
  end

  def test_under_fair_there_is_no_policy_to_recommend_but_who_tells_more
    trace = MadeTraces.stalled.to_h
    { ["a.headway"] => "a.headway", ["out/a.headway", "out/b.headway"] => "out", ["x/a.headway", "y/a.headway"] => "FILE",
      ["my $file.headway"] => "FILE", ["caf\xE9.headway"] => "FILE", ["#{"long/" * 20}a.headway"] => "FILE" }.each do |files, said|
      fair = trace.merge(processes: files.map { |file| trace[:processes].first.merge(policy: "fair", file: file) })

      assert_equal "worker-3 spent 52 % of its time waiting; 82 % of that behind `Report#render` (app/report.rb:12). " \
                   "Policy fair is on already: `headway advise #{said}` says whether more processes help.", Headway::Report::Headline.of(fair)
    end
  end

  # As of `headway run --report` alone, whose trace goes once the page is there.
  def test_under_fair_a_trace_that_will_be_gone_is_nothing_to_ask
    data = MadeTraces.stalled.to_h
    data[:processes].first[:policy] = "fair"
    gone = Headway::Report::Document.new(Data.define(:to_h).new(to_h: data), paths: []).to_h[:headline]

    assert_operator gone, :end_with?, "Policy fair is on already: of a recording (--record FILE), `headway advise FILE` says whether more processes help."
  end

  def test_with_threads_that_cannot_be_scheduled_it_says_what_would_have_to_change
    trace = MadeTraces.stalled
    shared = trace.to_h.merge(processes: trace.to_h[:processes].map { |process| process.merge(preempt: "none") })
    advice = "Policy fair would let it go first, but not with M:N threads: `env -u RUBY_MN_THREADS headway run --policy fair -- ruby app.rb`."

    assert Headway::Report::Headline.of(shared).end_with?(" (app/report.rb:12). #{advice}"), Headway::Report::Headline.of(shared)
  end

  def test_without_blame_to_the_thread
    assert_equal "worker-3 spent 52 % of its time waiting; 91 % of that behind crunch. #{FAIR}",
                 headline(MadeTraces.stalled(stacks: []))
  end

  def test_many_holders_in_turn
    turns = (0...6).map { |turn| { name: "io-#{turn}", segments: [[:suspended, turn.to_f], [:running, 1.0], [:suspended, 5.0]] } }

    assert_equal "late spent 100 % of its 6.00 s under load waiting, behind 6 threads in turn. #{FAIR}",
                 headline(MadeTrace.new(threads: [{ name: "late", segments: [[:ready, 6.0], [:suspended, 4.0]] }, *turns]))
  end

  def test_with_the_gvl_free_no_policy_helps
    late = { name: "late", segments: [[:ready, 0.6], [:suspended, 1.0]] }
    busy = { name: "busy", segments: [[:running, 0.2], [:suspended, 1.4]] }
    trace = MadeTrace.new(threads: [late, busy])

    assert_equal "late spent 100 % of its 600 ms under load waiting; 67 % of that with the GVL free, as the system let it run late. " \
                 "No policy helps there, but more processor time does: other programs, a quota or threads without the GVL took it.", headline(trace)

    work = [{ name: "GET /", count: 30, total_s: 1.0, running_s: 0.1, ready_s: 0.5, computed_s: 0.0, blamed_s: 0.0 }]

    assert_equal "`GET /` spent 50 % of its 1.00 s waiting for the GVL; 67 % of all waits were with the GVL free, " \
                 "as the system let threads run late. No policy helps there, but more processor time does: " \
                 "other programs, a quota or threads without the GVL took it.", Headway::Report::Headline.of(trace.to_h.merge(work: work))
  end

  # It is woken a thousand times, 100 µs each.
  def test_waking_is_nothing_to_complain_of
    woken = { name: "woken", segments: [[:ready, 0.0001], [:running, 0.0001], [:suspended, 0.01]] * 1000 }
    work = [{ name: "GET /", count: 1000, total_s: 1.0, running_s: 0.1, ready_s: 0.1, computed_s: 0.0, blamed_s: 0.0, blocked: [], blamed: [] }]
    trace = MadeTrace.new(threads: [woken, { name: "idle", segments: [[:running, 0.01], [:suspended, 9.0]] }])

    assert_match(/\AThe program was idle: /, headline(trace))
    assert_match(/\AThe program was idle: /, Headway::Report::Headline.of(trace.to_h.merge(work: work)))
  end

  def test_what_heeds_no_interrupt_gives_way_under_no_policy
    stacks = MadeTraces.stalled.to_h[:blame][:stacks].map { |stack| stack.merge(late_s: 0.8 * stack[:weight_s]) }
    deaf = "No policy cuts that short: for 50 ms and longer at a time it heeded no interrupt (native code that keeps the GVL, " \
           "a garbage collection, or no processor to run on)."

    once = " With policy fair it would go after one such time, not after several: `headway run --policy fair -- ruby app.rb`."

    { "fair" => "", "observe" => once, "quantum" => once }.each do |policy, rest|
      [[], WORK].each do |work|
        said = headline(MadeTraces.stalled(stacks: stacks, work: work, processes: [{ pid: 1, policy: policy }]))

        assert_operator said, :end_with?, "#{deaf}#{rest}"
        refute_includes said, FAIR
      end
    end
  end

  # With a Mutex around what they compute, say: going first would get it no further.
  def test_who_computes_for_long_itself_gains_nothing_by_going_first
    workers = [0, 1].map { |i| { name: "worker-#{i}", segments: [[:suspended, 0.1 + i], [:running, 1.0], [:ready, 0.9], [:suspended, 2.0]] } }
    said = headline(MadeTrace.new(threads: workers))

    assert_match(/\Aworker-0 spent 31 % of its 2.90 s under load waiting, /, said)
    refute_includes said, "policy"
  end

  def test_threads_alike
    workers = %w[a b c].map { |name| { name: name, segments: [[:ready, 1.0], [:running, 0.0], [:suspended, 1.0]] } }
    cruncher = { name: "crunch", segments: [[:running, 2.0]] }

    assert_match(/ spent 50 % of its time waiting, 2 more threads nearly as much; 100 % of that behind crunch\. With /,
                 headline(MadeTrace.new(threads: [*workers, cruncher])))
    assert_match(/waiting, another thread nearly as much; /, headline(MadeTrace.new(threads: [*workers.first(2), cruncher])))
  end

  # A thread that lived for 10 ms and waited for 9 of them is not what the trace is about.
  def test_a_short_life_is_no_example
    trace = MadeTrace.new(threads: [{ name: "brief", segments: [[:ready, 0.009], [:suspended, 0.001]] },
                                    { name: "long", segments: [[:ready, 4.0], [:suspended, 6.0]] },
                                    { name: "crunch", segments: [[:running, 10.0]] }])

    assert_match(/\Along spent 40 % /, headline(trace))
  end

  def test_cpu_bound_threads_take_turns
    trace = MadeTrace.new(threads: [{ name: "a", segments: [[:running, 1.0], [:ready, 1.0]] },
                                    { name: "b", segments: [[:ready, 1.0], [:running, 1.0]] }])

    assert_match(/\AOnly CPU-bound threads waited, and for one another \(a: 50 % of its time\): one GVL is one CPU/, headline(trace))
  end

  def test_who_joins_computing_threads_is_not_what_it_is_about
    computing = (0...4).map do |i|
      turns = [[:running, 0.25], [:ready, 0.75]] * 2
      { name: "cpu-#{i}", segments: [[:ready, i * 0.25], *turns, [:running, 0.25], [:ready, 0.75 - i * 0.25]] }
    end
    main = { name: "main", segments: [[:suspended, 3.0], [:ready, 0.1], [:running, 0.01]] }
    said = headline(MadeTrace.new(threads: [main, *computing]))

    assert_match(/\AOnly CPU-bound threads waited, and for one another \(cpu-\d: /, said)
    assert_match(/\Aio spent /, headline(MadeTrace.new(threads: [main, *computing, { name: "io", segments: [[:ready, 0.8], [:suspended, 2.2]] }])))
  end

  def test_who_computes_and_waits_with_the_gvl_free_waited_for_nobody
    busy = { name: "busy", segments: [[:running, 0.5], [:ready, 0.5]] * 3 }
    trace = MadeTrace.new(threads: [busy, { name: "idle", segments: [[:running, 0.01], [:suspended, 2.99]] }])

    assert_match(/\Abusy spent 50 % of its time waiting; 100 % of that with the GVL free, .* No policy helps there/, headline(trace))
    work = [{ name: "GET /", count: 3, total_s: 3.0, running_s: 1.5, ready_s: 1.5, computed_s: 0.0, blamed_s: 0.0 }]
    assert_match(/\A`GET \/` spent 50 % of its 3\.00 s waiting for the GVL; 100 % of all waits were with the GVL free/,
                 Headway::Report::Headline.of(trace.to_h.merge(work: work)))
  end

  # That of another method's holder that this one never waited for weighs more.
  def test_the_line_is_one_that_the_waiter_was_behind
    holders = %w[near far].map { |name| { name: name, segments: [[:running, 1.0], [:suspended, 9.0]] } }
    waiter = { name: "waiter", segments: [[:ready, 1.0], [:suspended, 9.0]] }
    holders[1][:segments].unshift([:suspended, 1.0]).last[1] = 8.0
    frames = [8, 6].map { |line| { method: "Object#crunch", file: "app.rb", line: line } }
    stacks = [[0, 1.0], [1, 7.0]].map { |id, weight| { thread: id, frames: [id], weight_s: weight, samples: 3 } }

    assert_match(/\Awaiter spent .*; 100 % of that behind `Object#crunch` \(app\.rb:8\)/,
                 headline(MadeTrace.new(threads: [*holders, waiter], frames: frames, stacks: stacks)))
  end

  # Nobody waits for the GVL where a single thread does all, and still everything does.
  def test_an_event_loop_that_stood_still
    loop_of = lambda do |*names|
      MadeTrace.new(threads: [{ name: "main", segments: [[:running, 3.0], [:suspended, 1.0]] }],
                    marks: names.map { |name| { thread: 0, name: name, start_s: 1.0, end_s: nil } })
    end
    hash, sort = "loop stall of 1200 ms: /srv/app/models/user.rb:12:in 'User#hash'", "loop stall of 400 ms: a.rb:3:in `block in sort'"

    assert_equal "Only one thread ran, so nobody waited. The event loop stood still for 1.20 s in `User#hash` (models/user.rb:12).#{OFFLOAD}",
                 headline(loop_of[hash])
    assert_match(/waited\. The event loop stood still 2 times, for 800 ms in all, in `block in sort` \(a\.rb:3\)\.#{Regexp.escape(OFFLOAD)}\z/, headline(loop_of[sort, sort]))
    assert_match(/ 3 times, for 2\.00 s in all, for 1\.20 s of that in `User#hash` /, headline(loop_of[sort, hash, sort]))
    assert_match(/ The event loop stood still for 90\.0 ms\.\z/, headline(loop_of["loop stall of 90 ms: no stack"]))
    refute_includes headline(loop_of["loop stall of 20 ms: no stack"]), "event loop"
  end

  def test_nothing_to_complain_of
    assert_equal "The trace is empty: no thread was seen while it was recorded.", headline(MadeTraces.empty)
    assert_equal "Only one thread ran, so nobody waited.", headline(MadeTraces.single)
    assert_equal "In each process only one thread ran, so nobody waited.", headline(MadeTraces.single_threaded)
    assert_equal "The program was idle: its threads ran for 1.00 ms of 9.00 s, and nobody waited to speak of.",
                 headline(MadeTraces.idle)
    two = [{ name: "a", segments: [[:running, 1.0], [:suspended, 1.0]] }, { name: "b", segments: [[:suspended, 1.0], [:running, 1.0]] }]
    assert_equal "Nobody waited: no thread had to ask for the GVL.", headline(MadeTrace.new(threads: two))
    two[1][:segments].insert(1, [:ready, 0.001])
    assert_equal "Nobody waited to speak of: 1.00 ms for the GVL over all threads, 1.00 ms at most at a time.",
                 headline(MadeTrace.new(threads: two))
  end

  # A server that was under load for 2 s and then idled for a minute: what was wrong is no less wrong.
  # Of a database, say.
  def test_work_that_only_waits_is_no_idling
    threads = Array.new(2) { |i| { name: "web #{i}", segments: [[:ready, 0.001], [:running, 0.01], [:suspended, 9.0]] } }
    said = ->(total_s) { headline(MadeTrace.new(threads: threads, work: [{ **SLOW, total_s: total_s, running_s: 0.01, ready_s: 0.001 }])) }

    assert_match(/\ANobody waited to speak of: 2\.00 ms for the GVL over all threads, 1\.00 ms at most at a time\. `GET \/slow` spent 100 % of its 17\.0 s /, said[17.0])
    assert_match(/\AThe program was idle: .* `GET \/slow` spent 99 % of its 2\.00 s /, said[2.0])
  end

  def test_idling_afterwards_hides_nothing
    heavy = { name: "heavy", segments: [[:running, 2.0], [:suspended, 60.0]] }
    light = { name: "light", segments: [[:ready, 1.2], [:running, 0.1], [:suspended, 60.7]] }

    assert_equal "light spent 57 % of its 2.10 s under load waiting; 100 % of that behind heavy. #{FAIR}",
                 headline(MadeTrace.new(threads: [heavy, light]))
    assert_match(/Garbage collection took 48 % of the 2\.10 s under load \(1\.00 s in 1 stop\)/,
                 headline(MadeTrace.new(threads: [heavy, light], gc: [[0, 0.5, 1.5]])))
  end

  # Those too many to be told apart ran: their time is in that of the threads already.
  def test_a_wait_for_other_threads_was_no_idle_time
    heavy = { name: "heavy", segments: [[:running, 2.0], [:suspended, 60.0]] }
    light = { name: "light", segments: [[:ready, 1.2], [:running, 0.1], [:suspended, 60.7]] }
    data = MadeTrace.new(threads: [heavy, light]).to_h
    data[:threads].last[:waited_for] = [{ thread: nil, others: true, s: 1.2 }]

    assert_match(/\Alight spent 57 % of its 2\.10 s under load waiting/, Headway::Report::Headline.of(data))
  end

  # Waits of microseconds, or few of them, are nothing to change a policy for.
  def test_what_is_not_worth_a_change
    brief = { name: "brief", segments: [[:ready, 0.006], [:running, 0.5], [:suspended, 1.0]] }
    hog = { name: "hog", segments: [[:running, 0.006], [:suspended, 1.5]] }

    assert_equal "brief spent 1.2 % of its 506 ms under load waiting; 100 % of that behind hog.",
                 headline(MadeTrace.new(threads: [brief, hog]))
  end

  # However many there are of them, policy fair lets nobody go before those that block by themselves.
  def test_threads_that_run_for_less_than_fair_prefers_them_for
    pool = lambda do |run_s|
      Array.new(8) { |i| { name: "worker-#{i}", start_s: i * run_s, segments: [[:running, run_s], [:suspended, run_s], [:ready, 6 * run_s]] * 10 } }
    end

    assert_match(/ No policy shortens that: who has the GVL mostly gives it up by itself within 5 ms\. More processes do\.\z/,
                 headline(MadeTrace.new(threads: pool[0.006])))
    assert_match(/ With policy fair it would go first: /, headline(MadeTrace.new(threads: pool[0.008])))
  end

  # Of what was run they are little, of what was waited for they are not.
  def test_few_long_holds_beside_many_brief_ones
    job = { name: "job", segments: [[:running, 0.0015], [:suspended, 0.002]] * 60 + [[:running, 0.03], [:suspended, 1.0]] }
    io = { name: "io", start_s: 60 * 0.0035 - 0.1, segments: [[:suspended, 0.101], [:ready, 0.029], [:running, 0.001], [:suspended, 0.1]] }

    assert_match(/\Aio spent .* With policy fair it would go first: /, headline(MadeTrace.new(threads: [job, io])))
  end

  # What they collect counts to nobody, so that they seem to block soon.
  def test_collections_of_garbage_give_way_under_no_policy
    threads = Array.new(8) { |i| { name: "worker-#{i}", start_s: i * 0.006, segments: [[:running, 0.006], [:suspended, 0.006], [:ready, 0.036]] * 10 } }
    said = ->(gc_s) { headline(MadeTrace.new(threads: threads, gc: [[0, 0.1, 0.1 + gc_s]])) }

    assert_includes said[0.13], " No policy shortens that: collections of garbage keep the GVL. More processes do, or less garbage."
    assert_includes said[0.11], " No policy shortens that: who has the GVL mostly gives it up by itself within 5 ms. More processes do."
  end

  # Nor is it said then that they give it up soon.
  def test_what_heeds_no_interrupt_beside_others_that_block_soon
    deaf = MadeTraces.stalled.to_h[:blame][:stacks].map { |stack| stack.merge(late_s: 0.8 * stack[:weight_s]) }
    data = MadeTraces.stalled(stacks: deaf).to_h
    data[:totals][:ready_batch_s] = 0.1

    assert_operator Headway::Report::Headline.of(data), :end_with?, "a garbage collection, or no processor to run on)."
  end

  def test_commands
    { "puma 8.0.2 (tcp://0.0.0.0:3000) [shop]" => "bundle exec puma", "puma: cluster worker 0: 42 [shop]" => "bundle exec puma",
      "/app/vendor/bundle/ruby/3.4.0/bin/puma -t 5:5" => "bundle exec puma -t 5:5",
      "/usr/lib/gems/puma-8.0.2/bin/puma-wild -t 5:5" => "bundle exec puma -t 5:5",
      "sidekiq 7.3.0 shop [0 of 5 busy]" => "bundle exec sidekiq", "-e" => "COMMAND", "" => "COMMAND",
      "bin/rails server" => "bin/rails server", "ruby a.rb --url=http://h/?a=1&b=2" => "ruby a.rb '--url=http://h/?a=1&b=2'",
      "ruby a.rb; rm -r $HOME" => "ruby 'a.rb;' rm -r '$HOME'", "ruby a.rb it's --é=~/x" => "ruby a.rb 'it'\\''s' '--é=~/x'",
      "x" * 100 => "COMMAND", "a\nb" => "COMMAND" }.each do |command, expected|
      trace = MadeTraces.stalled(processes: [{ pid: 1, command: command }])
      assert_equal "headway run --policy fair -- #{expected}", headline(trace)[/headway run [^`]+/], command
    end
  end

  # `bundle exec` only where a bundle is.
  def test_commands_of_gems
    trace = MadeTraces.stalled(processes: [{ pid: 1, command: "/usr/local/bin/puma -p 3000" }])
    Dir.mktmpdir do |directory|
      Dir.chdir(directory) do
        assert_includes headline(trace), "`headway run --policy fair -- puma -p 3000`"
        File.write("Gemfile.lock", "")
        assert_includes headline(trace), "`headway run --policy fair -- bundle exec puma -p 3000`"

        other = MadeTraces.stalled(processes: [{ pid: 1, command: "/usr/local/bin/good_job start" }])
        assert_includes headline(other), "`headway run --policy fair -- /usr/local/bin/good_job start`"
        File.write("Gemfile.lock", "GEM\n  specs:\n    good_job (4.23.1)\n      puma\n")
        assert_includes headline(other), "`headway run --policy fair -- bundle exec good_job start`"
      end
    end
  end

  def test_collections
    assert_equal "Only one thread ran, so nobody waited. Garbage collection took 40 % of the time (1.00 s in 1 stop), " \
                 "and no thread could run meanwhile.", headline(MadeTraces.single(gc: [[0, 0.5, 1.5]]))
    refute_match(/Garbage/, headline(MadeTraces.single(gc: [[0, 0.5, 0.6]])))
  end

  def test_holders_on_no_processor
    said = "the time that the GVL was held (1.00 s), the holder was on no processor: other programs, a quota or threads " \
           "without the GVL took it, or native code slept."

    assert_equal "Only one thread ran, so nobody waited. For 50 % of #{said}", headline(MadeTraces.single(off_cpu_s: 1.0))
    assert_operator headline(MadeTraces.stalled(off_cpu_s: 1.0)), :end_with?, "#{FAIR} For 40 % of #{said}"
    refute_match(/processor/, headline(MadeTraces.single(off_cpu_s: 0.19)))
  end

  # The quota is the containers', so of several processes' counts the worst says it.
  def test_a_quota_that_was_used_up
    spent = " The CPU quota was used up in 30 of its 40 periods, and then every thread stands still until the next: no policy helps there, " \
            "a larger quota does."
    processes = [nil, { periods: 40, exhausted: 30 }, { periods: 40, exhausted: 20 }, { periods: 0, exhausted: 0 }].each_with_index.map do |quota, index|
      { pid: index + 1, quota: quota }
    end

    assert_equal "Only one thread ran, so nobody waited.#{spent}", headline(MadeTraces.single(processes: processes))
    assert_equal "Only one thread ran, so nobody waited. For 50 % of the time that the GVL was held (1.00 s), the holder was on no processor." + spent,
                 headline(MadeTraces.single(off_cpu_s: 1.0, processes: processes))
    rarely = [{ pid: 1, quota: { periods: 1000, exhausted: 49 } }, { pid: 2, quota: { periods: 0, exhausted: 0 } }]
    assert_equal "Only one thread ran, so nobody waited.", headline(MadeTraces.single(processes: rarely))
  end

  # An instant of nothing, such as a ring dumped right after it began.
  def test_no_time_passed
    assert_kind_of String, headline(MadeTrace.new(threads: [{ name: "main", segments: [] }]))
    assert_kind_of String, headline(MadeTrace.new(threads: [], processes: []))
  end

  def test_code_that_is_nobodys_own
    frames = [{ method: "Integer#times", file: "<internal:numeric>", line: 238 },
              { method: "block (2 levels) in Pool#run", file: "/usr/lib/ruby/gems/3.4.0/gems/pool-1.0/lib/pool.rb", line: 3 }]
    stacks = [{ thread: 1, frames: [0, 1], weight_s: 1.0, samples: 1 }]

    { [0, 1] => "Pool#run", [0] => "Integer#times", [] => "unknown code" }.each do |stack, method|
      stacks[0][:frames] = stack
      assert_match(/behind `#{method}`/, headline(MadeTraces.stalled(frames: frames, stacks: stacks)))
    end
  end

  def test_methods_without_the_blocks_around_the_line
    label = Headway::Report::Labels
    names = ["Report#render", "block in Report#render", "block (2 levels) in Report#render", "rescue in Report#render",
             "block in rescue in Report#render", "ensure in block in Report#render"]

    assert_equal ["Report#render"], names.map { |name| label.method_of(method: name, file: "a.rb") }.uniq
    assert_equal "<main> of a.rb", label.method_of(method: "block in <main>", file: "/srv/a.rb")
    assert_equal "a.rb", label.method_of(method: "", file: "/srv/a.rb")
  end
end
