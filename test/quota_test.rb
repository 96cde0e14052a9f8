# frozen_string_literal: true

require "test_helper"
require "headway"
require "headway/processors"
require "fileutils"
require "tmpdir"

class QuotaTest < Minitest::Test
  QUOTA = Headway.const_get(:Quota)
  PROCESSORS = Headway.const_get(:Processors)

  def test_a_quota_of_either_version_is_found
    assert_in_delta 0.5, quota("0::/app.slice/web", "app.slice/web/cpu.max" => "50000 100000")
    assert_in_delta 2.5, quota("0::/", "cpu.max" => "250000 100000")
    assert_in_delta 1.5, quota("9:name=systemd:/\n4:cpu,cpuacct:/docker/7", **old("docker/7", 150_000))
  end

  def test_the_groups_above_have_a_say
    assert_in_delta 1, quota("0::/a/b", "a/b/cpu.max" => "max 100000", "a/cpu.max" => "100000 100000", "cpu.max" => "400000 100000")
  end

  # What a container is called outside isn't seen in it.
  def test_a_group_that_is_not_there_is_that_at_the_root
    assert_in_delta 3, quota("4:cpu,cpuacct:/docker/7", **old("", 300_000))
  end

  def test_no_quota
    assert_nil quota("0::/", "cpu.max" => "max 100000")
    assert_nil quota("4:cpu,cpuacct:/", **old("", -1))
    assert_nil quota("0::/", "cpu.max" => "")
    assert_nil quota("nonsense")
    assert_nil quota("")
    assert_nil QUOTA.find("/nowhere")
  end

  def test_never_more_than_there_are
    assert_includes 1..Etc.nprocessors, PROCESSORS.count
  end

  # Who counts is about to make what there is one of: a pool.
  def test_no_other_fiber_runs_while_files_are_read
    order = []
    Thread.new do
      Fiber.set_scheduler(Headway::FiberScheduler.new)
      Fiber.schedule { order << PROCESSORS.count }
      Fiber.schedule { order << :other }
    end.join
    assert_equal [PROCESSORS.count, :other], order
  end

  def test_how_often_it_was_used_up
    files = { "web/cpu.max" => "50000 100000", "web/cpu.stat" => "usage_usec 9\nnr_periods 100\nnr_throttled 40\nthrottled_usec 7" }
    in_root("0::/web", files) do |root|
      quota = QUOTA.find(root)
      assert_equal File.join(root, "sys/fs/cgroup/web/cpu.stat"), quota.path
      assert_equal({ periods: 100, exhausted: 40 }, quota.use)
      quota.start_afresh
      assert_equal({ periods: 0, exhausted: 0 }, quota.use)
      File.write(quota.path, "nr_periods 150\nnr_throttled 41\n")
      assert_equal({ periods: 50, exhausted: 1 }, quota.use)
      File.delete(quota.path)
      assert_equal({ periods: 0, exhausted: 0 }, quota.use)
    end
  end

  private

  def quota(groups, files = {}) = in_root(groups, files) { |root| QUOTA.find(root)&.processors }

  def in_root(groups, files)
    Dir.mktmpdir do |root|
      { "proc/self/cgroup" => groups, **files.transform_keys { |name| "sys/fs/cgroup/#{name}" } }.each do |name, text|
        FileUtils.mkdir_p(File.dirname(File.join(root, name)))
        File.write(File.join(root, name), "#{text}\n")
      end
      yield root
    end
  end

  def old(group, quota_us) = { "cpu/#{group}/cpu.cfs_quota_us" => quota_us, "cpu/#{group}/cpu.cfs_period_us" => 100_000 }
end
