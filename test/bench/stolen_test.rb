# frozen_string_literal: true

require "minitest/autorun"
require "tempfile"
require "headway/bench"

# How much of the machine its host took.
class StolenTest < Minitest::Test
  def test_share_of_all_cpus_time
    assert_in_delta 0.02, share("cpu  100 0 50 1000 0 0 0 10 40 0\ncpu0 9 9 9\n", "cpu  150 0 60 1136 0 0 0 14 90 0\ncpu0 9 9 9\n"), 1e-9
    assert_equal 0.0, share("cpu  1 2 3 4 5 6 7 8 9 10\n", "cpu  1 2 3 4 5 6 7 8 9 10\n")
    assert_equal 0.0, share("cpu  1 2 3 4 5 6 7 8\n", "cpu  90 2 3 4 5 6 7 7\n"), "some hosts correct what they told"
  end

  def test_where_nobody_tells
    assert_nil share("cpu  1 2 3 4 5 6 7\n", "cpu  2 3 4 5 6 7 8\n"), "before Linux 2.6.11"
    assert_nil share("", "")
    assert_nil share("intr 1 2 3 4 5 6 7 8\n", "intr 1 2 3 4 5 6 7 8\n")
    assert_nil share("cpu  1 2 3 4 5 6 7 8\n", nil)
    assert_nil Headway::Bench::Stolen.new("/nowhere/at/all").share
  end

  def test_this_machine
    share = Headway::Bench::Stolen.new.share
    assert_includes 0.0..1.0, share if share
  end

  private

  # Between two states of the file, of which the second may be none.
  def share(before, after)
    Tempfile.create("stat") do |file|
      File.write(file.path, before)
      stolen = Headway::Bench::Stolen.new(file.path)
      after ? File.write(file.path, after) : File.unlink(file.path)
      stolen.share
    end
  end
end
