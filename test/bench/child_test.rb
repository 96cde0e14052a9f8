# frozen_string_literal: true

require "test_helper"
require "headway/bench"
require "tmpdir"

class BenchChildTest < Minitest::Test
  Child = Headway::Bench::Child

  def test_gives_the_last_line
    assert_equal({ "a" => 1 }, ruby('puts "something else"; puts %({"a": 1})'))
  end

  def test_reads_more_than_a_pipe_holds
    assert_equal 200_000, ruby('warn "x" * 200_000; print %("), "y" * 200_000, %(")').size
  end

  def test_says_why_it_failed
    assert_match(/it broke \(RuntimeError\)/, failure('raise "it broke"'))
    assert_match(/enough/, failure('warn "enough"; exit 3'))
    assert_match(/printed no result: hello/, failure('puts "hello"'))
    assert_match(/printed no result: it said nothing/, failure(""))
  end

  def test_a_stuck_program_is_killed
    Dir.mktmpdir do |directory|
      file = File.join(directory, "pid")
      program = [RbConfig.ruby, "-e", "File.write(ARGV.first, Process.pid); sleep", file]
      # On a machine that is busy with others a Ruby may not have started by then.
      [2, 10, 50].each do |limit_s|
        error = assert_raises(Headway::Bench::Error) { Child.run(program, limit_s:) }
        assert_match(/did not finish within/, error.message)
        break if File.size?(file)
      end
      assert_raises(Errno::ESRCH) { Process.kill(0, Integer(File.read(file))) }
    end
  end

  def test_a_program_that_does_not_exist
    error = assert_raises(Headway::Bench::Error) { Child.run(["/nonexistent/program"]) }
    assert_match(%r{cannot run /nonexistent/program}, error.message)
  end

  private

  def ruby(code) = Child.run([RbConfig.ruby, "-e", code])

  def failure(code) = assert_raises(Headway::Bench::Error) { ruby(code) }.message
end
