# frozen_string_literal: true

require "harness/recorder_test"
require "headway/report"

# A process that nobody asks to end, and one that goes on: what its trace's numbers stand for is in the file nevertheless.
class RecorderKilledTest < Harness::RecorderTest
  PROGRAM = <<~RUBY
    require "headway"
    module Heavy
      def self.grind(seconds)
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
        nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
      end
    end

    Headway.start(policy: ARGV.fetch(1).to_sym, record: ARGV.fetch(0))
    3.times { |number| Thread.new { loop { sleep 0.002 } }.name = "napper \#{number}" }
    # Marked once and never again, as of a server that nobody calls any more.
    Thread.new { Headway.mark("early") { sleep 0.01 } }.join
    Thread.new { Thread.current.name = "cruncher"; loop { Heavy.grind(0.15) && sleep(0.05) } }.join
  RUBY

  %i[observe fair].each do |policy|
    define_method("test_names_are_there_while_it_runs_and_when_it_was_killed_under_#{policy}") do
      running(policy) do |pid|
        await("names, though nothing has ended", limit: 30) { complete? }
        Process.kill(:KILL, pid)
        Process.wait(pid)
      end
      assert complete?
      refute_nil analysis[:processes].first[:damage]
      headline = Headway::Report::Headline.of(analysis)
      assert_includes headline, "Heavy.grind" if policy == :observe
    end
  end

  # So does the child of a fork that has had a second thread. One that never had writes nothing.
  def test_a_process_that_becomes_another_program
    run = program(<<~RUBY)
      Headway.start(policy: :fair, record: FILE)
      # More than the beginning is there.
      written = ->(file) { sleep 0.01 until File.size?(file).to_i > 1000 }
      child = -> { 3.times { Thread.new { loop { 2_000.times(&:to_s) && sleep(0.0005) } } } }
      pid = fork { child.call; written.("\#{FILE.delete_suffix("headway")}\#{Process.pid}.headway"); exec("true") }
      Process.wait(pid)
      Process.wait(fork { exec("true") })
      child.call
      written.(FILE)
      $stdout.write(pid) && $stdout.flush
      exec("true")
    RUBY
    assert run.success?, run
    assert_equal ["out.#{run.out}.headway", "out.headway"], files
    files.each do |name|
      process = analysis(file(name))[:processes].first
      assert_operator process[:events], :>, 0
      assert Headway::Trace.endless?(process[:damage][:what]), process
    end
  end

  # What the process has no time to name is said to be so.
  def test_a_report_says_why_there_is_no_end
    running(:observe) do |pid|
      await("an event") { File.exist?(file) && File.size(file) > 200 }
      assert_match(/^headway: warning: process #{pid}: its trace has no end: it was killed, called exit!, became another program or goes on/, warnings_of_report)
    end
  end

  private

  def running(policy)
    lib = File.expand_path("../../lib", __dir__)
    pid = Process.spawn(Harness::RubyProcess::ENVIRONMENT, RbConfig.ruby, "-I", lib, "-e", PROGRAM, file, policy.to_s, out: File::NULL)
    yield pid
  ensure
    begin
      Process.kill(:KILL, pid)
      Process.wait(pid)
    rescue SystemCallError # it is gone
      nil
    end
  end

  # Where threads can't be named from outside, they are not.
  NAMES = RUBY_PLATFORM.include?("linux") ? ["cruncher", "main", "napper 0", "napper 1", "napper 2"] : ["main"]

  def complete?
    return false unless File.exist?(file) && File.size?(file)

    trace = analysis
    unnamed = NAMES - trace[:threads].map { |row| row[:name] }
    unnamed.empty? && trace[:marks].any? { |mark| mark[:name] == "early" } && blamed?(trace)
  end

  def blamed?(trace)
    frames = trace[:blame][:frames]
    trace[:blame][:stacks].any? { |stack| stack[:frames].any? { |frame| frames[frame][:method].end_with?("Heavy.grind") } }
  end

  def warnings_of_report
    run = Harness::RubyProcess.run(File.expand_path("../../exe/headway", __dir__), "report", file)
    assert run.success?, run
    run.err
  end
end
