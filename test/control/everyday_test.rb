# frozen_string_literal: true

require "control/controlled_process"
require "harness/vm_fixture"

# Who asks is answered whatever the threads do, and the program notices nothing.
class ControlEverydayTest < Minitest::Test
  include ControlledProcesses

  COMPUTING = "16.times { |number| Thread.new { loop { nil } }.name = \"cpu \#{number}\" }; ready; sleep"

  %i[fair quantum observe].each do |policy|
    %i[signal poll].each do |preempt|
      define_method("test_answers_while_every_thread_computes_under_#{policy}_#{preempt}") do
        program = program(COMPUTING, start: "Headway.start(policy: #{policy.inspect}, preempt: #{preempt.inspect})")
        10.times { assert_equal 17, stats(program.socket)[:process][:threads] }
        await("all names") { stats(program.socket)[:threads].map { |row| row[:name] }.include?("cpu 15") }
      end
    end
  end

  def test_answers_while_a_thread_holds_the_gvl_in_native_code
    Harness::FixtureBuild.load
    program = program(<<~RUBY)
      require "harness/vm_fixture"
      Harness::FixtureBuild.load
      Thread.new { sleep }.name = "worker"
      ready
      VMFixture.sleep_holding_gvl(3)
      ready
      sleep
    RUBY
    before = now
    20.times { assert_equal 2, stats(program.socket)[:process][:threads] }
    assert_equal "quantum", ask(program.socket, { set: { policy: "quantum" } })[:settings][:policy]
    assert_nil program.out.wait_readable(0), "it took #{now - before} s" if now - before < 2
    await_ready(program)
  end

  def test_answers_while_all_threads_sleep
    program = program("4.times { Thread.new { Thread::Queue.new.pop } }; ready; sleep")

    20.times { assert_equal 5, stats(program.socket)[:threads].size }
  end

  DEADLOCKS = {
    "a queue nobody fills" => "Thread::Queue.new.pop",
    "a join of a thread that stopped" => "Thread.new { Thread.stop }.join",
    "two mutexes in opposite order" => <<~RUBY
      a, b = Thread::Mutex.new, Thread::Mutex.new
      x = Thread.new { a.synchronize { sleep 0.05; b.synchronize { 1 } } }
      y = Thread.new { b.synchronize { sleep 0.05; a.synchronize { 1 } } }
      [x, y].each(&:join)
    RUBY
  }.freeze

  def test_a_deadlock_is_still_found_also_while_clients_ask
    DEADLOCKS.each do |name, code|
      [false, true].each do |asking|
        program = program("ready; sleep 0.1; #{code}")
        if asking
          clients = Array.new(3) { Thread.new { loop { stats(program.socket) } rescue nil } }
          clients.each { |client| client.report_on_exception = false }
        end
        status = ended(program)

        refute_predicate status, :success?
        assert_match(/No live threads left\. Deadlock\?/, File.read(program.err), "#{name}, #{asking}")
        clients&.each(&:join)
      end
    end
  end

  def test_exceptions_kills_and_timeouts_arrive_while_clients_ask
    program = program(<<~RUBY)
      ready
      require "timeout"
      lost = 0
      300.times do |number|
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
          lost += 1 unless thread.join(5) && thread.value == :raised
        else
          thread.kill
          lost += 1 unless thread.join(5) && thread.value.nil?
        end
      end
      20.times { begin; Timeout.timeout(0.002) { loop { nil } }; lost += 1; rescue Timeout::Error; end }
      puts lost
      ready
    RUBY
    asking = Thread.new { loop { stats(program.socket) } rescue nil }

    assert_equal "0", line_of(program, 60), File.read(program.err)[0, 6000]
  ensure
    asking&.kill&.join
  end

  def test_errands_leave_no_trace
    program = program(<<~RUBY)
      Thread.report_on_exception = Thread.abort_on_exception = true
      2.times { Thread.new { loop { sleep 0.001 } } }
      ready
      $stdin
      sleep 0.5
      puts Thread.list.size
      puts Headway.stats[:threads].map { |row| row[:name] }.grep(/control/).inspect
    RUBY
    30.times { stats(program.socket) && sleep(0.02) rescue break }

    assert_equal "3", line_of(program)
    assert_equal "[]", line_of(program)
    assert_empty File.read(program.err)
  end

  def test_a_program_that_kills_every_thread_it_sees
    program = program(<<~RUBY)
      ready
      until File.exist?(#{File.join("DIRECTORY", "done").inspect}.sub("DIRECTORY", ENV.fetch("HW_TEST_DIRECTORY")))
        (Thread.list - [Thread.current]).each(&:kill)
        Thread.new { sleep 0.0005 }
        Thread.pass
      end
      ready
    RUBY
    100.times { stats(program.socket) }
    File.write(File.join(@directory, "done"), "")
    await_ready(program)
  end

  def test_a_frozen_thread_group_and_no_more_threads
    program = program("Thread.new { sleep }; ThreadGroup::Default.freeze; ready; loop { sleep 0.001 }")

    5.times { assert_equal 2, stats(program.socket)[:threads].size }
    assert_empty File.read(program.err)
  end

  def test_settings_storm_under_load
    program = program("8.times { Thread.new { loop { nil } } }; 4.times { Thread.new { loop { sleep 0.001 } } }; ready; sleep")
    200.times do |number|
      ask(program.socket, { set: { policy: %w[fair quantum observe][number % 3], quantum_ms: 1 + (number % 20), preempt: %w[signal poll][number % 2] } })
    end
    ask(program.socket, { set: { policy: "fair" } })
    before = stats(program.socket)[:process][:switches]
    await("it goes on") { stats(program.socket)[:process][:switches][:voluntary] > before[:voluntary] + 10 }
    assert_equal 0, stats(program.socket)[:process][:park_timeouts]
  end

  def test_blame_as_the_recorder_keeps_it
    program = program(<<~'RUBY')
      def (Headway::Stats).blame(most)
        { samples: 3, weight: 4.0, folded: 0, stacks: [{ weight: 3.0, samples: 2, frames: [{ method: "A#\u00e9\"", file: "a.rb", line: 7 }] },
                                                       { weight: 1.0, samples: 1, frames: [] }].first(most) }
      end
      ready
      loop { sleep 0.001 }
    RUBY
    lines = await("blame") { stats(program.socket)[:blame] }

    assert_equal ["75 % A#\u00e9\" a.rb:7", "25 %  :"], lines
    assert_match(/^blame: 75 % A#\u00e9" a\.rb:7$/, headway("top", program.pid.to_s, env: { "HEADWAY_CONTROL_DIR" => @sockets }).out)
  end

  def test_under_m_to_n_threads_it_only_observes
    program = program("ready; sleep", env: { "RUBY_MN_THREADS" => "1" }, start: "Headway.start(policy: :observe)")

    assert_match(/RUBY_MN_THREADS=1: Headway only observes/, ask(program.socket, { set: { policy: "fair" } })[:error])
    assert_equal "observe", stats(program.socket)[:policy]
  end

  def test_at_exit_blocks_may_still_be_looked_at
    program = program("at_exit { Thread.new { sleep }; ready; sleep 1 }", wait: false)
    await_ready(program)

    assert_equal 2, stats(program.socket)[:process][:threads]
    assert_predicate ended(program), :success?
    assert_empty Dir.children(@sockets)
  end

  private

  def program(code, env: {}, **options)
    super(code, env: { "HW_TEST_DIRECTORY" => @directory, **env }, **options)
  end
end
