# frozen_string_literal: true

require "cli/command_line"
require "report/made_trace"

# `headway report` as it is typed.
class ReportCommandTest < Minitest::Test
  include CommandLine

  def test_help
    result = headway("report", "--help")

    assert_quiet_success result
    %w[--html --perfetto --firefox --collapsed --markdown --json].each { |option| assert_includes result.out, option }
  end

  def test_what_cannot_be_asked_for
    assert_bad_usage(/no trace file: give the file that headway run --record wrote/, headway("report"))
    assert_bad_usage(/no trace file/, headway("report", "--json"))
    assert_bad_usage(/unknown option --frob \(headway report --help/, headway("report", "x", "--frob"))
    assert_bad_usage(/--html needs a value/, headway("report", "x", "--html"))
    assert_bad_usage(/--html needs a value/, headway("report", "x", "--html", "--json"))
    assert_bad_usage(/--html needs a file name, or - for standard output/, headway("report", "x", "--html", ""))
    assert_bad_usage(/--markdown needs a file name/, headway("report", "x", "--markdown", ""))
    assert_bad_usage(/only one report can go to standard output: --markdown and --json ask for it/,
                     headway("report", "x", "--markdown", "-", "--json"))
    assert_bad_usage(/--html and --firefox are to go to one file: give each its own/,
                     headway("report", "x", "--html", "out", "--firefox", "out"))
  end

  # Said before the trace is read, which may take long.
  def test_where_nothing_can_be_written
    in_directory do |directory|
      assert_bad_usage(%r{cannot write /nonexistent/out\.html: No such file or directory},
                       headway("report", "x", "--html", "/nonexistent/out.html"))
      assert_bad_usage(/cannot write #{directory}: Is a directory/, headway("report", "x", "--html", directory))
      out = File.join(directory, "out")
      headway("report", File.join(directory, "nosuch"), "--html", out)

      refute_path_exists out
    end
  end
end
