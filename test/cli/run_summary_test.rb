# frozen_string_literal: true

require "cli/command_line"

# `headway run --summary`: who prints one, and where.
class RunSummaryTest < Minitest::Test
  include CommandLine

  TWO_THREADS = "Thread.new { sleep 0.01 }.join"

  def test_it_goes_to_stderr_and_changes_nothing_else
    result = headway_ruby("puts 'out'; #{TWO_THREADS}; exit 3", "--summary")

    assert_equal ["out\n", 3], [result.out, result.status.exitstatus]
    assert_equal 1, summaries(result).size
    assert_match(/process \d+, -e, Ruby #{RUBY_VERSION}, policy fair, quantum 100 ms, preempt signal$/, result.err)
  end

  def test_it_has_totals_a_table_and_a_sentence
    code = "Thread.new { Thread.current.name = 'napper'; 20.times { sleep 0.001 } }.join"
    lines = headway_ruby(code, "--summary", "--policy=observe").err.lines

    assert lines.any? { |line| line =~ /passed; over all threads: running .*, ready .*, suspended / }
    assert lines.any? { |line| line =~ /^  napper +\d/ }
    assert_match(/waited.*\.$/, lines.last)
  end

  def test_it_says_that_the_process_had_no_processor
    stopped = 'Process.wait(Process.spawn("sleep 0.1; kill -STOP #{$$}; sleep 1; kill -CONT #{$$}"))'
    result = headway_ruby("Thread.new { nil while 1 + 1 }; #{stopped}", "--summary")

    assert_match(/For at least \d\d % of the time that the GVL was held \(.*\), the holder was on no processor: .*\.$/, result.err)
  end

  # Requests are on one thread of a pool after the other, and a fiber that keeps its loop keeps no thread waiting.
  def test_it_says_what_only_a_recording_tells
    { "what kept an event loop" => ["Fiber.set_scheduler(Headway::FiberScheduler.new)", *("require 'async'; Sync { sleep 0.001 }" if RUBY_VERSION >= "3.4")],
      "which requests and jobs waited, and behind what code" => ["Headway::Work.start(:job, 'Sync').finish"] }.each do |what, codes|
      codes.each do |code|
        assert_operator headway_ruby("require 'headway'; #{code}", "--summary").err, :end_with?, "Note: #{what}, a recording tells: --record FILE\n"
      end
    end
    refute_includes headway_ruby(TWO_THREADS, "--summary").err, "a recording tells"
    Dir.mktmpdir do |directory|
      code = "require 'headway'; Headway::Work.start(:job, 'Sync').finish"
      refute_includes headway_ruby(code, "--summary", "--record=#{directory}").err, "a recording tells"
    end
  end

  def test_it_comes_last
    result = headway_ruby("at_exit { warn 'the program says goodbye' }", "--summary")

    assert_operator result.err.index("goodbye"), :<, result.err.index("Headway ")
  end

  def test_it_comes_after_an_exception_and_keeps_the_status
    result = headway_ruby("raise 'oops'", "--summary")

    assert_equal 1, result.status.exitstatus
    assert_match(/oops/, result.err)
    assert_equal 1, summaries(result).size
  end

  def test_a_worker_process_prints_its_own_and_an_idle_fork_none
    result = headway_ruby("2.times { fork { #{TWO_THREADS} } }; fork { }; p Process.waitall.size", "--summary")

    assert_equal "3\n", result.out
    assert_equal 3, summaries(result).uniq.size
  end

  # By which it tells whether they or the program's code keep the GVL.
  def test_a_forked_child_has_none_of_its_parents_collections
    told = "Headway::Summary.prepend(Module.new { def initialize(*, gc_s:, **) = (puts(gc_s); super) })"
    result = headway_ruby("9.times { GC.start }; Process.wait(fork { GC.disable; #{told}; #{TWO_THREADS} })", "--summary")

    assert_equal "0.0\n", result.out
  end

  def test_a_ruby_it_starts_prints_its_own_and_a_package_tool_none
    code = "system(RbConfig.ruby, '-e', ''); system(RbConfig.ruby, '-S', 'gem', '--version', out: File::NULL)"
    result = headway_ruby(code, "--summary")

    assert_equal 2, summaries(result).size
  end

  def test_a_closed_stderr_changes_nothing
    result = headway_ruby("puts 'out'; STDERR.close", "--summary")

    assert_equal ["out\n", 0], [result.out, result.status.exitstatus]
  end

  def test_none_without_being_asked
    assert_empty headway_ruby(TWO_THREADS).err
  end

  private

  # The number of each process that printed one.
  def summaries(result)
    result.err.scan(/^Headway \S+: process (\d+)/).flatten
  end
end
