# frozen_string_literal: true

require "harness/trap_test"

# Trap: the ticker triggers a job in a VM that is being torn down.
class ExitTest < Harness::TrapTest
  LOAD = <<~RUBY
    require "headway"
    Headway.start(**eval(ARGV.shift))
    3.times { Thread.new { loop { nil } } }
    3.times { Thread.new { loop { sleep 0.0002 } } }
    sleep rand * 0.02
  RUBY

  # What a program may end with, and the status it should end with.
  ENDINGS = {
    "" => 0,
    "exit" => 0,
    "exit 3" => 3,
    "exit! 4" => 4,
    "abort" => 1,
    "raise 'over'" => 1,
    "at_exit { 3.times.map { Thread.new { 20_000.times { nil } } }.each(&:join); exit 5 }" => 5,
    "at_exit { Headway.stop }" => 0,
    "Thread.new { exit 6 }.join" => 6,
    "Thread.list.each { |t| t.kill unless t == Thread.main }" => 0,
    "END { sleep 0.001; nil while rand > 0.0001 }" => 0,
    "ObjectSpace.define_finalizer(Object.new, proc { Thread.pass; 1000.times { nil } })" => 0,
    "Process.kill(:TERM, Process.pid); sleep" => Signal.list["TERM"],
    "Process.kill(:KILL, Process.pid); sleep" => Signal.list["KILL"],
    "Thread.main.raise(Interrupt); sleep" => Signal.list["INT"],
    "Thread.new { Thread.main.raise(SystemExit.new(7)) }; loop { nil }" => 7,
    "Headway.stop; Headway.start; fork { exit 1 }; Process.wait" => 0
  }.freeze

  def time_limit = 300

  Harness::Modes::ALL.each do |mode, settings|
    define_method("test_every_ending_under_load_under_#{mode}") do
      scale(ENDINGS.size).times.map { |index| ENDINGS.to_a[index % ENDINGS.size] }.each_slice(4) do |endings|
        endings.map { |code, status| Thread.new { assert_ends(code, status, settings) } }.each(&:join)
      end
    end
  end

  private

  def assert_ends(code, status, settings)
    run = Harness::RubyProcess.eval(LOAD + code, settings.inspect, limit: 30)
    refute run.timed_out, "#{code}: #{run}"
    assert_equal status, run.status.exitstatus || run.status.termsig, "#{code}: #{run}"
    refute_match(/\[BUG\]|double free|corrupt/, run.err)
  end
end
