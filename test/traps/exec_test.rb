# frozen_string_literal: true

require "harness/trap_test"

# Trap: a signal pending across an exec kills the new program, and a mask or an
# ignored signal that it inherits confuses it.
class ExecTest < Harness::TrapTest
  FIELDS = %w[SigPnd ShdPnd SigBlk SigIgn].freeze

  test_under Harness::Modes::ALL.keys, "spawned programs run and inherit no signal state" do |mode|
    expected = signal_state(IO.popen(%w[cat /proc/self/status], &:read))
    under_load(mode) do
      scale(40).times do |number|
        case number % 4
        when 0 then assert system("true")
        when 1 then assert_equal "hello\n", `echo hello`
        when 2 then assert_equal 0, Process.wait2(Process.spawn("exit 0")).last.to_i
        when 3 then assert_equal expected, signal_state(IO.popen(%w[cat /proc/self/status], &:read))
        end
      end
    end
  end

  test_under Harness::Modes::ALL.keys, "fork and exec" do |mode|
    under_load(mode) do
      scale(25).times do
        reader, writer = IO.pipe
        pid = fork { exec("cat", "/proc/self/status", out: writer) }
        writer.close
        state = signal_state(reader.read)
        reader.close
        assert Process.wait2(pid).last.success?
        assert_equal 0, state["SigBlk"].hex & urg_bit
        assert_equal 0, state["SigIgn"].hex & urg_bit
        assert_equal 0, (state["SigPnd"].hex | state["ShdPnd"].hex) & urg_bit
      end
    end
  end

  # Each round replaces itself by the next, and the last says so.
  ROUNDS = <<~RUBY
    require "headway"
    left, settings = Integer(ARGV[0]), ARGV[1]
    Headway.start(**eval(settings))
    3.times { Thread.new { loop { nil } } }
    3.times { Thread.new { loop { sleep 0.0002 } } }
    sleep 0.01 + rand * 0.01
    exec(RbConfig.ruby, "-I", ENV["HEADWAY_LIB"], "-e", ENV["ROUNDS"], (left - 1).to_s, settings) if left > 0
    print "done"
    exit
  RUBY

  def test_a_program_that_replaces_itself_under_load
    env = { "ROUNDS" => ROUNDS, "HEADWAY_LIB" => File.expand_path("../../lib", __dir__) }
    Harness::Modes::ALL.each do |mode, settings|
      run = Harness::RubyProcess.eval(ROUNDS, scale(2).to_s, settings.inspect, env: env)
      assert run.success?, "#{mode}: #{run}"
      assert_equal "done", run.out, mode
    end
  end

  private

  # With nobody to preempt the computing threads each step would take 200 ms.
  def under_load(mode, &)
    beside_cpu_threads(mode == :observe ? 0 : 2) { beside_io_threads(4, pause: 0.0003, &) }
  end

  def signal_state(status)
    status.lines.map { |line| line.chomp.split(":\t") }.to_h.slice(*FIELDS)
  end

  def urg_bit = 1 << (Signal.list["URG"] - 1)
end
