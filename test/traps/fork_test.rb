# frozen_string_literal: true

require "harness/trap_test"
require "tmpdir"

# Trap: fork copies locks somebody holds, and leaves the ticker and all other threads behind.
class ForkTest < Harness::TrapTest
  test_under Harness::Modes::ALL.keys, "a storm of forks under load" do |mode|
    under_load(mode) do
      scale(40).times do |number|
        assert_child_works { number.even? ? exit!(0) : exit(0) }
      end
    end
  end

  test_under Harness::Modes::PREEMPTING, "a child schedules its own threads" do |mode|
    under_load do
      3.times do
        assert_child_works do
          exit!(2) unless Headway.started? && Headway.policy == Harness::Modes::ALL[mode][:policy]
          worst = nil
          beside_cpu_threads(3) { worst = Array.new(20) { elapsed { sleep 0.001 } }.sort[12] }
          exit!(3) if mode.start_with?("fair") && worst > 0.09
          exit!(4) if Headway.stats[:process][:running].zero?
          exit!(0)
        end
      end
    end
  end

  test_under Harness::Modes::PREEMPTING, "threads fork, and children fork" do
    under_load do
      forkers = Array.new(4) do
        Thread.new do
          Array.new(5) do
            fork do
              grandchild = fork { Thread.new { compute(0.01) }.join; exit!(0) }
              exit!(Process.wait2(grandchild).last.exitstatus)
            end
          end.map { |pid| reap(pid) }
        end
      end
      assert_equal [0], forkers.flat_map(&:value).uniq
    end
  end

  test_under Harness::Modes::PREEMPTING, "a child may stop and start" do
    under_load do
      5.times do
        assert_child_works do
          3.times do
            Headway.stop
            Thread.new { compute(0.002) }.join
            exit!(2) unless Headway.start(policy: :fair)
            beside_cpu_threads(2) { sleep 0.005 }
          end
          exit(0)
        end
      end
    end
  end

  test_under Harness::Modes::PREEMPTING, "a pipe to a forked self" do
    under_load do
      10.times do
        IO.popen("-") do |io|
          io ? assert_equal("child", io.read) : print("child")
        end
      end
    end
  end

  test_under Harness::Modes::PREEMPTING, "at_exit blocks of a child run" do
    Dir.mktmpdir do |directory|
      under_load do
        5.times do |number|
          path = File.join(directory, number.to_s)
          assert_child_works do
            at_exit { beside_cpu_threads(2) { sleep 0.002 }; File.write(path, "done") }
            exit(0)
          end
          assert_equal "done", File.read(path)
        end
      end
    end
  end

  # Bug #21959: where somebody was in a hook as it was forked, a child's list of hooks is locked for ever. The larger a process, the longer
  # that takes.
  test_under %i[fair_signal], "a child may add a hook, whoever came back from I/O as it was forked" do
    ballast = Array.new(scale(200)) { "x" * 1_000_000 }
    beside_io_threads(8, pause: 0.0002) do
      scale(100).times { assert_child_works { exit!(Headway::Native.metered { nil } ? 0 : 2) } }
    end
    refute_empty ballast
  end

  test_under %i[fair_signal], "a child of a thread that slept from the start to the stop may start anew" do
    asked = Queue.new
    forker = Thread.new do
      asked.pop
      assert_child_works do
        Headway.start(policy: :fair)
        20.times { Thread.new { nil }.join }
        exit!(elapsed { Array.new(2) { Thread.new { compute(0.1) } }.each(&:join) } < patience(2) ? 0 : 2)
      end
    end
    Thread.pass until forker.stop?
    Headway.start(policy: :fair)
    Headway.stop
    asked << true
    forker.join
  end

  # One that came while the parent forked may be left to the child. In the block given to fork it ends that; nothing of ours may let it
  # out, where the child would go on with the parent's code.
  def test_a_signal_strikes_a_child_in_its_block_only
    run = Harness::RubyProcess.eval(<<~'RUBY')
      require "headway"
      require "headway/metrics"
      Headway.start(policy: :fair)
      Headway::Metrics.worker = 3
      Headway::Metrics.request("GET /", running: 0, ready: 0, suspended: 0)
      parent = Process.pid
      armed = false
      trap(:TERM) { raise SignalException, "TERM" if armed && !(armed = false) }
      killer = spawn(RbConfig.ruby, "--disable=gems", "-e", "loop { Process.kill(:TERM, #{parent}) && sleep(0.001 + rand * 0.001) }")
      Thread.new { loop { sleep 0.0005 } }
      strays, stray = IO.pipe
      200.times do
        pid = nil
        begin
          armed = true
          pid = fork { exit!(0) }
          armed = false
        rescue SignalException
          stray.write("x") && exit!(1) if Process.pid != parent
        end
        Process.wait(pid) if pid
      end
      Process.kill(:KILL, killer)
      stray.close
      puts strays.read.size
    RUBY
    assert_equal "0\n", run.out, run
  end

  def test_a_daemon_goes_on
    Dir.mktmpdir do |directory|
      path = File.join(directory, "done")
      Harness::Modes::FAIR.each do |mode|
        run = Harness::RubyProcess.eval(<<~RUBY)
          require "headway"
          Headway.start(**#{Harness::Modes::ALL[mode]})
          threads = 3.times.map { Thread.new { loop { nil } } }
          sleep 0.05
          Process.daemon(true, true)
          threads = 3.times.map { Thread.new { 500_000.times { nil } } }
          sleep 0.01
          threads.each(&:join)
          File.write(#{path.inspect}, "done " + Headway.started?.to_s)
        RUBY
        assert run.success?, run
        await("daemon") { File.exist?(path) && File.size(path).positive? }
        assert_equal "done true", File.read(path)
        File.delete(path)
      end
    end
  end

  private

  # With nobody to preempt the computing threads each step would take 200 ms.
  def under_load(mode = nil, &)
    beside_cpu_threads(mode == :observe ? 0 : 2) { beside_io_threads(4, pause: 0.0005, &) }
  end

  def assert_child_works
    pid = fork do
      yield
    rescue StandardError => error
      $stderr.puts error.full_message
      exit!(99)
    end
    assert_equal 0, reap(pid)
  end

  # A child that hangs is reported as one, not waited for.
  def reap(pid)
    deadline = now + patience(20)
    loop do
      _, status = Process.wait2(pid, Process::WNOHANG)
      return status.exitstatus || status.to_s if status
      if now > deadline
        Process.kill(:SEGV, pid)
        Process.wait(pid)
        flunk "child #{pid} hangs"
      end
      sleep 0.002
    end
  end
end
