# frozen_string_literal: true

require "control/controlled_process"
require "harness/deadlocks"
require "harness/vm_fixture"

# Who asks is answered whatever the threads do, and the program notices nothing.
class ControlEverydayTest < Minitest::Test
  include ControlledProcesses

  def test_answers_while_every_thread_computes_under_every_policy
    program = program("ready; 6.times { |number| Thread.new { loop { nil } }.name = \"cpu \#{number}\" }; loop { nil }")
    await("all threads") { stats(program.socket)[:threads].size == 7 }
    %w[observe quantum fair].product(%w[signal poll]) do |policy, preempt|
      assert_equal policy, ask(program.socket, { set: { policy: policy, preempt: preempt } })[:settings][:policy]
      3.times { assert_equal 7, stats(program.socket)[:process][:threads] }
    end
    await("all names") { stats(program.socket)[:threads].map { |row| row[:name] }.sort == [*(0..5).map { |n| "cpu #{n}" }, "main"] }
  end

  def test_answers_while_a_thread_holds_the_gvl_in_native_code
    Harness::FixtureBuild.load
    program = program(<<~RUBY)
      require "harness/vm_fixture"
      Harness::FixtureBuild.load
      Thread.new { sleep }.name = "worker"
      Headway::Recorder.start(mode: :flight)
      ready
      loop do
        VMFixture.sleep_holding_gvl(1.5)
        ready
      end
    RUBY
    # Where answers waited for the GVL, each would take as long as it is kept.
    asked = await("three answers while it is kept") do
      asked = Array.new(3) do
        [stats(program.socket)[:process][:threads],
         ask(program.socket, { set: { policy: "quantum" } })[:settings][:policy],
         ask(program.socket, { dump: File.join(@directory, "dump") }).keys]
      end
      program.out.wait_readable(0) ? await_ready(program) : asked
    end

    assert_equal [[2, "quantum", [:dump]]], asked.uniq
    await_ready(program)
  end

  def test_answers_while_all_threads_sleep
    program = program("4.times { Thread.new { Thread::Queue.new.pop } }; ready; sleep")

    20.times { assert_equal 5, stats(program.socket)[:threads].size }
  end

  # All that there is to ask, one after the other, until the process is gone.
  def keep_asking(path)
    requests = [{ get: "stats" }, { set: { policy: "quantum", quantum_ms: 20 } }, { dump: File.join(@directory, "dump") },
                { get: "stats" }, { set: { policy: "fair", preempt: "poll" } }, { set: { preempt: "signal" } }, { ping: true }]
    Thread.new { requests.cycle { |request| ask(path, request) } rescue nil }
  end

  def test_a_deadlock_is_still_found_while_clients_ask
    Harness::DEADLOCKS.each do |name, code|
      program = program("Headway::Recorder.start(mode: :flight); ready; sleep 0.1; #{code}")
      clients = Array.new(3) { keep_asking(program.socket) }
      status = ended(program)

      refute_predicate status, :success?
      assert_match(/No live threads left\. Deadlock\?/, File.read(program.err), name)
      clients.each(&:join)
    end
  end

  def test_exceptions_kills_and_timeouts_arrive_while_clients_ask
    program = program(<<~RUBY)
      ready
      require "timeout"
      lost = 0
      100.times do |number|
        inside = Thread::Queue.new
        thread = Thread.new do
          i = 0
          inside << true
          loop { i += 1 }
        rescue RuntimeError
          :raised
        end
        inside.pop
        sleep 0.001
        if number.even?
          thread.raise("now")
          lost += 1 unless thread.join(20) && thread.value == :raised
        else
          thread.kill
          lost += 1 unless thread.join(20) && thread.value.nil?
        end
      end
      20.times { begin; Timeout.timeout(0.002) { loop { nil } }; lost += 1; rescue Timeout::Error; end }
      puts lost
      ready
    RUBY
    asking = keep_asking(program.socket)

    assert_equal "0", line_of(program, 60), File.read(program.err)[0, 6000]
  ensure
    asking&.kill&.join
  end

  def test_settings_storm_under_load
    program = program("4.times { Thread.new { loop { nil } } }; 4.times { Thread.new { loop { sleep 0.001 } } }; ready; sleep")
    100.times do |number|
      ask(program.socket, { set: { policy: %w[fair quantum observe][number % 3], quantum_ms: 1 + (number % 20), preempt: %w[signal poll][number % 2] } })
    end
    ask(program.socket, { set: { policy: "fair" } })
    before = stats(program.socket)[:process][:switches]
    await("it goes on") { stats(program.socket)[:process][:switches][:voluntary] > before[:voluntary] + 10 }
    assert_equal 0, stats(program.socket)[:process][:park_timeouts]
  end

  def test_the_line_that_others_wait_behind
    program = program(<<~RUBY)
      class Heavy
        def work = loop { 1 + 1 }
      end
      Thread.new { Heavy.new.work }
      ready
      loop { sleep 0.001 }
    RUBY
    await("headway top names it") { cli("top", program.pid).out.match?(/% of the waiting behind .*Heavy#work at -e:\d/) }
    line = stats(program.socket)[:blame][:lines].find { |row| row[:method].to_s.include?("Heavy#work") }

    assert_operator line[:weight], :>, 0
    assert_equal "-e", line[:file]
  end

  def test_under_m_to_n_threads_it_only_observes
    program = program("ready; sleep", env: { "RUBY_MN_THREADS" => "1" }, start: "Headway.start(policy: :observe)")

    assert_match(/RUBY_MN_THREADS=1: Headway only observes/, ask(program.socket, { set: { policy: "fair" } })[:error])
    assert_equal "observe", stats(program.socket)[:policy]
  end

  def test_at_exit_blocks_may_still_be_looked_at
    program = program("at_exit { Thread.new { sleep }; ready; sleep 0.01 until File.exist?(\"#{@directory}/go\") }", wait: false)
    await_ready(program)

    assert_equal 2, stats(program.socket)[:process][:threads]
    File.write(File.join(@directory, "go"), "")
    assert_predicate ended(program), :success?
    assert_empty Dir.children(@sockets)
  end
end
