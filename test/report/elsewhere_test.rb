# frozen_string_literal: true

require "test_helper"
require "headway/report"
require "report/made_trace"

# What a headline says of time spent elsewhere than at the GVL: in which line, at which call, for whom.
class ElsewhereTest < Minitest::Test
  include MadeTraces

  def test_where_work_was_blocked
    frames = [["Kernel#sleep", "<cfunc>", 0], ["Net::HTTP#get", "/usr/lib/ruby/net/http.rb", 9], ["block in Shop#price", "/srv/app/shop.rb", 12], ["Pool#take", "/srv/app/pool.rb", 3]]
    frames.map! { |method, file, line| { method: method, file: file, line: line } }
    said = ->(*blocked) { headline(MadeTraces.single(frames: frames, work: [{ **SLOW, blocked: blocked }])) }
    place = "`GET /slow` spent 97 % of its 20.0 s neither running nor waiting for the GVL, which no policy changes: "

    assert_operator said[{ frames: [0, 1, 2], s: 9.7 }, { frames: [0, 2], s: 4.85 }, { frames: [3], s: 2.0 }], :end_with?,
                    "#{place}75 % of that in `Shop#price` (app/shop.rb:12), at `Kernel#sleep`."
    assert_operator said[{ frames: [3], s: 19.5 }], :end_with?, "#{place}100 % of that in `Pool#take` (app/pool.rb:3)."
    assert_operator said[{ frames: [0], s: 19.4 }], :end_with?, "#{place}100 % of that in `Kernel#sleep`."
    [{ frames: [3], s: 9.0 }, { frames: [], s: 19.0 }, { frames: [99], s: 19.0 }].each { |other| assert_operator said[other], :end_with?, ELSEWHERE }
    assert_operator headline(MadeTraces.single(frames: frames, work: [{ **SLOW, computed_s: 4.0, blocked: [{ frames: [3], s: 19.4 }] }])), :end_with?,
                    "#{place}100 % of that in `Pool#take` (app/pool.rb:3); for 4.00 s of it it computed without the GVL."
  end

  # Where nothing is marked a queue, a socket or a sleep may be all that threads are there for.
  def test_threads_that_were_blocked_at_locks
    frames = [["Thread::Mutex#synchronize", "<cfunc>", 0], ["Cache#fetch", "/srv/app/cache.rb", 4], ["Monitor#enter", "<cfunc>", 0],
              ["Thread::Queue#pop", "<cfunc>", 0], ["Pool#run", "/srv/app/pool.rb", 9], ["Thread::Mutex#sleep", "<cfunc>", 0]]
    frames.map! { |method, file, line| { method: method, file: file, line: line } }
    said = lambda do |*blocked, **others|
      threads = blocked.map.with_index { |stacks, i| { name: "worker #{i}", segments: [[:running, 1.0], [:suspended, 9.0]], blocked: stacks } }
      headline(MadeTrace.new(threads: threads, frames: frames, **others))
    end
    locked = [{ frames: [0, 1], s: 6.0 }, { frames: [3, 4], s: 2.0 }]

    assert_operator said[locked, []], :end_with?, " worker 0 was blocked at locks for 60 % of the time, which no policy changes: 100 % of that in `Cache#fetch` (app/cache.rb:4)."
    assert_operator said[locked, [], [{ frames: [2, 4], s: 4.0 }]], :end_with?,
                    " 2 threads were blocked at locks for 50 % of the time, which no policy changes: 60 % of that in `Cache#fetch` (app/cache.rb:4)."
    [[[{ frames: [0, 1], s: 1.9 }]], [[{ frames: [3, 4], s: 9.0 }]], [[{ frames: [5, 4], s: 9.0 }]], [[{ frames: [], s: 9.0 }]], [[{ frames: [99], s: 9.0 }]]].each do |other|
      refute_match(/blocked at locks/, said[*other])
    end
    assert_operator said[[{ frames: [0], s: 9.0 }]], :end_with?, "100 % of that in `Thread::Mutex#synchronize`."
    refute_match(/blocked at locks/, said[locked, work: [SLOW]])
  end

  # The lock in it is the library's own affair.
  def test_a_wait_in_a_library_for_another_thread_is_told_as_the_library_s
    frames = [["Thread::Mutex#sleep", "<cfunc>", 0], ["MonitorMixin::ConditionVariable#wait", "/usr/lib/ruby/3.4.0/monitor.rb", 107],
              ["block in Pool::Queue#poll", "/srv/gems/pool-1.0/lib/pool.rb", 9], ["Pool#take", "/srv/gems/pool-1.0/lib/pool.rb", 3],
              ["Shop#price", "/srv/app/shop.rb", 12], ["PG::Connection#exec", "<cfunc>", 0],
              ["Lock#ns_wait", "/srv/gems/concurrent-ruby-1.3.8/lib/concurrent-ruby/concurrent/synchronization/lock.rb", 4],
              ["Concurrent::Event#wait", "/srv/gems/concurrent-ruby-1.3.8/lib/concurrent-ruby/concurrent/atomic/event.rb", 5]]
    frames.map! { |method, file, line| { method: method, file: file, line: line } }
    { [0, 1, 2, 3, 4] => "Pool::Queue#poll", [0, 1, 4] => "Thread::Mutex#sleep", [0, 1, 4, 2] => "Thread::Mutex#sleep",
      [5, 2, 3, 4] => "PG::Connection#exec", [0, 6, 7, 4] => "Concurrent::Event#wait" }.each do |stack, call|
      trace = MadeTraces.single(frames: frames, work: [{ **SLOW, blocked: [{ frames: stack, s: 19.4 }] }])

      assert_operator headline(trace), :end_with?, "100 % of that in `Shop#price` (app/shop.rb:12), at `#{call}`."
    end
  end

  # By them the page and the Markdown tell what is code.
  def test_backquotes_are_around_code_alone
    frames = [["Kernel#`", "<cfunc>", 0], ["Shop#price", "/srv/app/shop.rb", 12], ["Monitor#synchronize", "<cfunc>", 0]]
    frames.map! { |method, file, line| { method: method, file: file, line: line } }
    asleep, at_a_lock = [[0, 1], [2, 1]].map { |stack| { frames: stack, s: 19.4 } }
    thread = { name: "a`b", segments: [[:running, 0.6], [:suspended, 19.4]] }

    assert_match(/`GET '` spent .* in `Shop#price` \(app\/shop.rb:12\), at `Kernel#'`\.\z/,
                 headline(MadeTrace.new(threads: [thread], frames: frames, work: [{ **SLOW, name: "GET `", blocked: [asleep] }])))
    assert_includes headline(MadeTrace.new(threads: [{ **thread, blocked: [at_a_lock] }], frames: frames)), "a'b was blocked at locks"
  end

  # A request that has threads of its own look things up, and a file's lock, whose holder goes on as soon as it has the GVL.
  def test_waits_for_threads_ends_and_files_locks_may_be_waits_for_the_gvl
    threads = [{ name: "t0", segments: [[:running, 1.0], [:ready, 5.0], [:suspended, 14.0]] }, { name: "t1", segments: [[:suspended, 1.0], [:running, 5.0]] }]
    { "Thread#value" => true, "Thread#join" => true, "File#flock" => true, "Ractor#take" => true, "IO#read" => false }.each do |call, may|
      frames = [[call, "<cfunc>", 0], ["Shop#price", "/srv/app/shop.rb", 12]].map { |method, file, line| { method: method, file: file, line: line } }
      said = headline(MadeTrace.new(threads: threads, frames: frames, work: [{ **SLOW, blocked: [{ frames: [0, 1], s: 19.4 }] }]))

      assert_equal may, !said.include?("which no policy changes"), call
      assert_equal may, said.include?("at `#{call}`, for another thread, which may have waited for the GVL itself."), call
      late = headline(MadeTrace.new(threads: threads.first(1), frames: frames, work: [{ **SLOW, blocked: [{ frames: [0, 1], s: 19.4 }] }]))

      assert_includes late, "which no policy changes", "with the GVL free"
    end
  end

  # Who has a lock may wait for the GVL, which fair takes away; of so many threads all others may wait for that one.
  def test_waits_for_other_threads_that_may_be_waits_for_the_gvl
    frames = [["Monitor#synchronize", "<cfunc>", 0], ["Kernel#sleep", "<cfunc>", 0], ["Shop#price", "/srv/app/shop.rb", 12]]
    frames.map! { |method, file, line| { method: method, file: file, line: line } }
    at_a_lock, asleep = [0, 1].map { |leaf| { frames: [leaf, 2], s: 10.0 } }
    said = lambda do |ready_s, *blocked, **others|
      threads = Array.new(4) { |i| { name: "t#{i}", segments: [[:running, 1.0], [%i[ready running][i], ready_s], [:suspended, 19.0]], blocked: i.zero? ? blocked : [] } }
      threads.each { |thread| thread[:segments].reject! { |state, _| state.nil? } }
      headline(MadeTrace.new(threads: threads, frames: frames, **others))
    end
    work = ->(*blocked) { { work: [{ **SLOW, blocked: blocked }] } }
    place = "`Shop#price` (app/shop.rb:12)"

    assert_includes said[0.3, **work[at_a_lock, { **asleep, s: 9.0 }]],
                    "neither running nor waiting for the GVL: 98 % of that in #{place}, mostly at `Monitor#synchronize`, for another thread, which may have " \
                    "waited for the GVL itself."
    assert_includes said[0.3, **work[asleep, { **at_a_lock, frames: [2] }, { **at_a_lock, s: 6.0 }]], "in #{place}, longest at `Kernel#sleep`."
    assert_includes said[0.0, **work[at_a_lock, { **asleep, s: 1.0 }]], "57 % of that in #{place}, at `Monitor#synchronize`."
    [said[0.2, **work[at_a_lock]], said[0.3, **work[asleep, { **at_a_lock, s: 3.0 }]]].each { |other| assert_includes other, "the GVL, which no policy changes: " }
    assert_includes said[0.3, **work[asleep, { **at_a_lock, s: 4.0 }]], "waiting for the GVL: 72 % of that in #{place}, mostly at `Kernel#sleep`."
    assert_operator said[0.3, at_a_lock], :end_with?, "of the time, where whoever had these may have waited for the GVL: 100 % of that in #{place}."
    assert_includes said[0.2, at_a_lock], "of the time, which no policy changes: 100 % of that in #{place}."
  end

  # As of logins, whose passwords are hashed in native code.
  def test_what_work_computed_without_the_gvl
    login = { **SLOW, name: "POST /login", computed_s: 4.0 }
    said = "`POST /login` spent 97 % of its 20.0 s neither running nor waiting for the GVL, which no policy changes: for 4.00 s of that it " \
           "computed without the GVL; the rest is a wait for a processor, I/O, sleep, or a lock."

    assert_operator headline(MadeTraces.single(work: [login])), :end_with?, " #{said}"
    assert_operator headline(MadeTraces.single(work: [{ **login, computed_s: 1.9 }])), :end_with?, ELSEWHERE
  end

  # With a `path:` in the Gemfile it is in no directory of gems.
  def test_headway_s_own_code_is_not_the_program_s
    frames = [["Thread::Mutex#sleep", "<cfunc>", 0], ["Logger::LogDevice#write", "/srv/gems/logger-1.7.0/lib/logger/log_device.rb", 9],
              ["Headway::Rack#call", "/srv/headway/lib/headway/rack.rb", 70], ["Shop#call", "/srv/app/shop.rb", 12],
              ["Pool#run", "/srv/headway/lib/headway/bench/programs/pool.rb", 3]]
    frames.map! { |method, file, line| { method: method, file: file, line: line } }
    { [0, 1, 2] => "Logger::LogDevice#write` (logger/log_device.rb:9)", [0, 1, 2, 3] => "Shop#call` (app/shop.rb:12)",
      [0, 1, 4, 2] => "Pool#run` (programs/pool.rb:3)" }.each do |stack, place|
      trace = MadeTraces.single(frames: frames, work: [{ **SLOW, blocked: [{ frames: stack, s: 19.4 }] }])

      assert_includes headline(trace), "100 % of that in `#{place}"
    end
  end
end
