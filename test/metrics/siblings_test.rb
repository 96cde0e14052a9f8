# frozen_string_literal: true

require "test_helper"
require "headway"
require "harness/timing"
require "tmpdir"

# Files of processes that share a directory.
class MetricsSiblingsTest < Minitest::Test
  include Harness::Timing

  Family = Headway::Metrics::Family

  def setup
    @directory = Dir.mktmpdir("headway-siblings")
    @siblings = Headway::Metrics::Siblings.new(@directory, every: 60)
    @own = [Family.new("a_total", :counter, "A.", { {} => 1 })]
  end

  def teardown
    @siblings.stop
    FileUtils.rm_rf(@directory)
  end

  def write(pid, text) = File.write(File.join(@directory, "#{pid}.json"), text)

  def workers = @siblings.families(@own).first.series.keys.map { |labels| labels[:worker] }

  def test_others_stand_beside_its_own
    write(Process.ppid, '["w", [["a_total", "counter", "A.", [[{}, 5]]], ["b_total", "counter", "B.", [[{"x": "y"}, 2]]]]]')
    families = @siblings.families(@own)
    assert_equal({ { worker: Process.pid.to_s } => 1, { worker: "w" } => 5 }, families.first.series)
    assert_equal({ { worker: "w", x: "y" } => 2 }, families.last.series)
  end

  def test_files_of_the_dead_the_stale_and_the_damaged_are_left_out
    gone = fork { exit!(0) }
    Process.wait(gone)
    write(gone, '["w", []]')
    write(Process.ppid, '["w", [["a_total"')
    write("words", "{}")
    assert_equal [Process.pid.to_s], workers
    refute_path_exists File.join(@directory, "#{gone}.json")

    write(Process.ppid, '["w", [["a_total", "counter", "A.", [[{}, 5]]]]]')
    assert_equal 2, workers.size
    File.utime(Time.now - 3600, Time.now - 3600, File.join(@directory, "#{Process.ppid}.json"))
    assert_equal 1, workers.size
  end

  def test_what_it_writes_it_reads
    Headway::Metrics.request("GET /siblings", running: 1, ready: 0.2, suspended: 0)
    @siblings.stop
    path = nil
    other = fork do
      siblings = Headway::Metrics::Siblings.new(@directory, every: 60)
      Headway::Metrics.worker = 7
      Headway::Metrics.request("GET /siblings", running: 1, ready: 0.2, suspended: 0)
      siblings.instance_variable_get(:@reporter).report
      sleep
    end
    path = File.join(@directory, "#{other}.json")
    await("its file") { File.exist?(path) }
    waits = @siblings.families(Headway::Metrics.collect).find { |family| family.name == "ruby_gvl_request_wait_seconds" }
    series = waits.series.select { |labels, _| labels[:request] == "GET /siblings" }
    assert_equal [0.2], series.values.map { |value| value.is_a?(Headway::Metrics::Distribution) ? value.sum : flunk }.uniq
    assert_equal 2, series.size
  ensure
    Process.kill(:KILL, other)
    Process.wait(other)
  end
end
