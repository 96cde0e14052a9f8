# frozen_string_literal: true

require "harness/recorder_test"

# fork: each process writes a file of its own, and nothing twice.
class RecorderForkTest < Harness::RecorderTest
  def test_children_and_grandchildren
    run = program(<<~RUBY)
      Headway.start(policy: :fair, record: FILE)
      10.times { Headway.mark("parent") }
      pid = fork do
        Thread.new { 10.times { sleep 0.001 } }.join
        Headway.mark("child")
        grandchild = fork { Headway.mark("grandchild") }
        Process.wait(grandchild)
        puts grandchild
      end
      Process.wait(pid)
      puts pid, Process.pid
      Headway.mark("parent again")
    RUBY
    assert run.success?, run
    grandchild, child, parent = run.out.split.map(&:to_i)
    assert_equal ["out.#{child}.headway", "out.#{grandchild}.headway", "out.headway"].sort, files
    assert_equal [["parent"] * 10 + ["parent again"], parent], marks_and_pid("out.headway")
    assert_equal [["child"], child], marks_and_pid("out.#{child}.headway")
    assert_equal [["grandchild"], grandchild], marks_and_pid("out.#{grandchild}.headway")
    merged = analysis(*files.map { |name| file(name) })
    assert_equal 3, merged[:processes].size
    assert_equal parent, merged[:processes].find { |process| process[:pid] == child }[:parent_pid]
  end

  def test_a_child_that_runs_another_program_leaves_none
    run = program(<<~RUBY)
      Headway.start(record: FILE)
      Process.wait(fork { exec("true") })
      system("true")
      Process.wait(fork { exit! })
    RUBY
    assert run.success?, run
    assert_equal %w[out.headway], files
  end

  test_under %i[fair_signal fair_poll observe], "a storm of forks while recording" do
    Headway::Recorder.start(file: file)
    beside_io_threads(3, pause: 0.0005) do
      pids = Array.new(scale(20)) do |number|
        fork do
          Thread.new { Headway.mark("child") { compute(0.001) } }.join
          number.even? ? exit(0) : Headway::Recorder.stop && exit!(0)
        end
      end
      pids.each { |pid| assert_equal 0, Process.wait2(pid).last.exitstatus }
      Headway::Recorder.stop
      assert_equal pids.size + 1, files.size
    end
    files.each do |name|
      process = analysis(file(name))[:processes].first
      assert_nil process[:damage], name
      assert_equal 0, process[:dropped]
    end
  end

  def test_a_flight_recorder_goes_on_in_a_child
    run = program(<<~RUBY)
      Headway.start
      Headway::Recorder.start(file: FILE, mode: :flight, wait_threshold: 3600)
      Headway.mark("parent")
      pid = fork { Headway.mark("child"); p Thread.list.size }
      Process.wait(pid)
      puts pid
    RUBY
    assert run.success?, run
    assert_equal "1", run.out.lines.first.chomp
    child = run.out.lines.last.to_i
    assert_equal [["child"], child], marks_and_pid("out.#{child}.headway")
    assert_equal ["parent"], marks_and_pid("out.headway").first
  end

  def test_a_daemon_writes_under_its_own_number
    run = program(<<~RUBY)
      Headway.start(record: FILE)
      Headway.mark("before")
      Process.daemon(false, true)
      Headway.mark("daemon")
    RUBY
    assert run.success?, run
    # The daemon lives on when the program has ended: its file comes, has something in it, is whole.
    daemon = await("the daemon's file") { (files - ["out.headway"]).first }
    await("all of it") { File.size?(file(daemon)) && analysis(file(daemon))[:processes].first[:damage].nil? }
    assert_equal [2, ["daemon"]], [files.size, marks_and_pid(daemon).first]
  end

  private

  def marks_and_pid(name)
    trace = analysis(file(name))
    [trace[:marks].map { |mark| mark[:name] }, trace[:processes].first[:pid]]
  end
end
