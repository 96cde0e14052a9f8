# frozen_string_literal: true

require "harness/trap_test"
require "tmpdir"

# Trap: under M:N scheduling a Ruby thread has no native thread of its own.
class ManyToManyTest < Harness::TrapTest
  env "RUBY_MN_THREADS" => "1"

  test_under Harness::Modes::ALL.keys, "it observes, says so, and everything runs" do
    beside_cpu_threads(3) do |counters|
      beside_io_threads(5, pause: 0.001) do
        queue = Thread::Queue.new
        consumer = Thread.new { Array.new(100) { queue.pop } }
        100.times { |number| queue << number; sleep 0.0005 if (number % 10).zero? }
        assert_equal (0..99).to_a, consumer.value
      end
      await("all to count") { counters.all?(&:positive?) }
    end
    Thread.new { loop { nil } }.then { |thread| sleep 0.01; assert thread.kill.join(patience(10)) }
    assert_equal :observe, Headway.policy
    assert_equal :default, VMFixture.disposition(Signal.list["URG"])
    Headway.stats[:process].slice(:running, :ready, :suspended).each_value { |seconds| assert_operator seconds, :>=, 0 }
  end

  # All of them may have run on the native thread of the one that forks.
  test_under %i[observe], "a forked child counts its own threads only" do
    beside_io_threads(5, pause: 0.001) do
      forkers = Array.new(4) do
        Thread.new do
          sleep 0.01
          Process.wait2(fork { exit!(Headway::Stats.process[:threads]) }).last.exitstatus
        end
      end
      assert_equal [1] * 4, forkers.map(&:value)
    end
  end

  # As the VM reads the variable.
  def test_any_number_above_zero_switches_it_on
    { "2" => true, "01" => true, " 3x" => true, "+1" => true, "0" => false, "-1" => false, "on" => false, "" => false }.each do |value, on|
      run = Harness::RubyProcess.eval('require "headway"; Headway.start; print Headway.policy', env: { "RUBY_MN_THREADS" => value })
      assert_equal on ? "observe" : "fair", run.out, value.inspect
      assert_equal on, run.err.include?("RUBY_MN_THREADS=#{value}:"), run
    end
  end

  # Whoever starts the recording.
  def test_a_trace_tells_of_it
    [%(Headway.start; Headway::Recorder.start(file: ARGV[0])),
     %(Headway.start; Headway::Control::Client.new(Process.pid, Headway::Control.path).record(file: ARGV[0]))].each do |start|
      Dir.mktmpdir do |directory|
        trace = File.join(directory, "out.headway")
        code = "require 'headway'; require 'headway/control/client'; #{start}; Headway::Recorder.stop"
        run = Harness::RubyProcess.eval(code, trace, env: { "RUBY_MN_THREADS" => "1", "HEADWAY_CONTROL_DIR" => File.join(directory, "sockets") })
        assert run.success?, run
        assert_equal %w[observe none], Headway::Trace.open(trace).to_h[:processes].first.values_at(:policy, :preempt)
      end
    end
  end

  def test_it_says_so_once
    run = Harness::RubyProcess.eval('require "headway"; 3.times { Headway.start; Headway.stop }; p Headway.notices.size',
                                    env: { "RUBY_MN_THREADS" => "1" })
    assert run.success?, run
    assert_equal "1", run.out.strip
    assert_equal 1, run.err.lines.grep(/RUBY_MN_THREADS/).size, run
  end
end
