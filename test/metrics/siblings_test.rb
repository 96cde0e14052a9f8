# frozen_string_literal: true

require "test_helper"
require "headway"
require "harness/timing"
require "harness/default_encoding"
require "tmpdir"

# Files of processes that share a directory.
class MetricsSiblingsTest < Minitest::Test
  include Harness::Timing
  include Harness::DefaultEncoding

  FILE = '["w", [["ruby_gvl_preemptions_total", "counter", "P.", [[{}, 5]]], ["b_total", "counter", "B.", [[{"x": "y"}, 2]]]]]'
  REQUESTS = "ruby_gvl_request_seconds_total"

  def setup
    @directory = Dir.mktmpdir("headway[siblings]")
    @siblings = Headway::Metrics::Siblings.new(@directory, every: 60)
  end

  def teardown
    Headway::Metrics.worker = nil
    @siblings.stop
    FileUtils.rm_rf(@directory)
  end

  def file_of(pid) = File.join(@directory, "headway-#{pid}.json")

  def write(pid, text) = File.write(file_of(pid), text)

  def series(name = "ruby_gvl_preemptions_total") = @siblings.families.find { |family| family.name == name }.series

  def workers = series.keys.map { |labels| labels[:worker] }

  # In a process of its own: runs the block each time it is called, which answers what that returns.
  def asked(&block)
    question, asking = IO.pipe
    answering, answer = IO.pipe
    @other = fork do
      asking.close
      while question.gets
        Marshal.dump(block.call, answer)
      end
      exit!(0)
    end
    -> { asking.puts.then { Marshal.load(answering) } }
  end

  def test_others_stand_beside_its_own
    write(Process.ppid, FILE)
    assert_equal [Process.pid.to_s, "w"], workers
    assert_equal 5, series[{ worker: "w" }]
    assert_equal({ { worker: "w", x: "y" } => 2 }, series("b_total"))
  end

  # As Prometheus names one that has its own label's name. Without it two workers' series were one.
  def test_a_label_worker_of_the_programs_own_keeps_its_value_under_another_name
    write(Process.ppid, FILE.sub('[{"x": "y"}, 2]', '[{"worker": "a"}, 2], [{"worker": "b", "exported_worker": "c"}, 3]'))
    assert_equal({ { worker: "w", exported_worker: "a" } => 2, { worker: "w", exported_exported_worker: "b", exported_worker: "c" } => 3 },
                 series("b_total"))
  end

  def test_others_are_read_where_no_locale_is_set
    write(Process.ppid, FILE.sub("\"y\"", "\"caf\u00e9\""))
    with_encoding(:default_external, Encoding::US_ASCII) { assert_equal({ { worker: "w", x: "caf\u00e9" } => 2 }, series("b_total")) }
  end

  # As in a program whose own text is in another encoding, which hasn't all there is.
  def test_others_are_read_whatever_the_program_reads_as
    write(Process.ppid, FILE.sub("\"y\"", "\"caf\u2193\""))
    with_encoding(:default_internal, Encoding::ISO_8859_1) { assert_equal({ { worker: "w", x: "caf\u2193" } => 2 }, series("b_total")) }
  end

  def test_a_gauge_that_is_no_number_keeps_nothing_back
    odd = Struct.new(:families).new([Headway::Metrics::Family.new("odd", :gauge, "Odd.", { {} => Float::NAN })])
    ask = asked do
      Headway::Metrics.register(odd)
      Headway::Metrics.worker = "odd"
      @siblings.families.size
    end
    ask.call
    assert_predicate series("odd")[{ worker: "odd" }], :nan?
  ensure
    Process.kill(:KILL, @other)
    Process.wait(@other)
  end

  def test_however_often_it_is_mounted_one_thread_writes
    reporters = -> { Thread.list.count { |thread| thread.name == "headway metrics" } }
    before = reporters.call
    3.times { Headway::Metrics::Endpoint.new(directory: @directory) }
    assert_equal before + 1, reporters.call
  ensure
    Headway::Metrics::Siblings.at(@directory).stop
  end

  def test_nothing_but_its_own_files_is_touched
    others = %w[package.json 20240101.json headway-.json headway-0.json headway-1.json.new].map { |name| File.join(@directory, name) }
    others.each { |file| File.write(file, "{}") }
    File.utime(Time.now - 3600, Time.now - 3600, *others)
    assert_equal [Process.pid.to_s], workers
    assert_equal others.sort, Dir.children(@directory).map { |name| File.join(@directory, name) }.sort
  end

  # In a directory that others may write to, too.
  def test_no_link_that_lies_beside_its_file_is_written_through
    Headway::Metrics.worker = "mine"
    Dir.mktmpdir do |elsewhere|
      other = File.join(elsewhere, "other")
      File.write(other, "another's")
      File.symlink(other, "#{file_of(Process.pid)}.part")
      assert_equal ["mine"], workers
      assert_equal "another's", File.read(other, 20)
      assert File.lstat(file_of(Process.pid)).file?
    end
  end

  def test_a_pipe_that_nobody_writes_to_holds_nothing_up
    File.mkfifo(file_of(Process.ppid))
    assert_equal [Process.pid.to_s], workers
  end

  def test_no_counter_goes_back_whichever_of_them_is_asked
    Headway::Metrics.worker = "mine"
    name = "GET /back-#{object_id}"
    labels = { worker: "mine", request: name, state: "running" }
    ask = asked { series(REQUESTS)[labels] }
    answers = Array.new(3) do
      Headway::Metrics.request(name, running: 1, ready: 0, suspended: 0)
      [series(REQUESTS)[labels], ask.call]
    end
    assert_equal [1, 1, 2, 2, 3, 3], answers.flatten
  ensure
    Process.kill(:KILL, @other)
    Process.wait(@other)
  end

  def test_two_that_share_a_number_are_told_apart
    Headway::Metrics.worker = "w"
    write(Process.ppid, FILE)
    assert_equal ["w-#{Process.pid}", "w-#{Process.ppid}"], workers
    assert_equal 5, series[{ worker: "w-#{Process.ppid}" }]
    File.delete(file_of(Process.ppid))
    assert_equal %w[w], workers
  end

  # As on a disk that is full: siblings read what was there before.
  def test_no_counter_goes_back_while_nothing_can_be_written
    Headway::Metrics.worker = "mine"
    name = "GET /full-#{object_id}"
    labels = { worker: "mine", request: name, state: "running" }
    count = ->(siblings) { siblings.families.find { |family| family.name == REQUESTS }.series[labels] }
    ask = asked { count.call(@siblings) }
    soon = Headway::Metrics::Siblings.new(@directory, every: 0.1)
    Headway::Metrics.request(name, running: 1, ready: 0, suspended: 0)
    answers = [count.call(soon), count.call(@siblings), ask.call]
    _, err = capture_subprocess_io do
      Dir.mkdir("#{file_of(Process.pid)}.part")
      Headway::Metrics.request(name, running: 1, ready: 0, suspended: 0)
      answers << count.call(@siblings) << ask.call
      await("what it is by now, as siblings take the file for a dead one's") { count.call(soon) == 2 }
    end
    assert_equal [1] * 5, answers
    assert_equal 1, err.scan("metrics don't reach").size, err
  ensure
    soon&.stop
    Process.kill(:KILL, @other)
    Process.wait(@other)
  end

  def test_a_directory_that_was_removed_is_made_again_where_it_was_in_one
    Headway::Metrics.worker = "mine"
    assert_equal %w[mine], workers
    FileUtils.rm_rf(@directory)
    assert_equal %w[mine], workers
    assert_path_exists file_of(Process.pid)
    nested = File.join(@directory, "a", "b")
    inner = Headway::Metrics::Siblings.new(nested, every: 60)
    FileUtils.rm_rf(File.dirname(nested))
    _, err = capture_subprocess_io { refute_empty inner.families }
    assert_match(/metrics don't reach/, err)
    refute_path_exists File.dirname(nested)
  ensure
    inner&.stop
  end

  # The endpoint's answer, which may be a second old.
  def test_no_counter_goes_back_however_often_they_are_asked
    name = "GET /often-#{object_id}"
    endpoint = nil
    scrape = lambda do
      endpoint ||= Headway::Metrics::Endpoint.new(directory: @directory)
      text = endpoint.call("REQUEST_METHOD" => "GET")[2].join
      text.scan(/^ruby_gvl_request_seconds_total.*#{name}".*running"} (\S+)/).flatten.sum(&:to_i)
    end
    ask = asked do
      Headway::Metrics.worker = "other"
      Headway::Metrics.request(name, running: 1, ready: 0, suspended: 0)
      scrape.call
    end
    Headway::Metrics.worker = "mine"
    Headway::Metrics.request(name, running: 100, ready: 0, suspended: 0)
    answers = [scrape.call, ask.call, scrape.call, ask.call, scrape.call]
    assert_equal [100, 101], answers.first(2)
    assert_equal answers.sort, answers
  ensure
    Headway::Metrics::Siblings.at(@directory).stop
    Process.kill(:KILL, @other)
    Process.wait(@other)
  end

  # Whoever is asked next reads the file.
  def test_nobody_is_told_of_what_is_not_yet_in_the_file
    Headway::Metrics.worker = "mine"
    go_on = Queue.new
    @siblings.define_singleton_method(:dump) { |family| go_on.pop && super(family) }
    writing = Thread.new { @siblings.families }
    sleep 0.001 until go_on.num_waiting == 1
    file = file_of(Process.pid)
    asked = Thread.new { @siblings.families(60).then { File.exist?(file) } }
    refute asked.join(0.1)
    100.times { go_on << true }
    assert asked.value
    writing.join
  end

  def test_one_for_a_directory_whatever_becomes_of_where_the_program_is
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway/metrics"
      require "headway/web"
      require "tmpdir"
      there = Dir.mktmpdir
      gone = Dir.mktmpdir
      Dir.chdir(gone)
      Dir.rmdir(gone)
      p Headway::Metrics::Endpoint.new(directory: there).call("REQUEST_METHOD" => "GET")[0]
      begin; Headway::Metrics::Endpoint.new(directory: "here"); rescue Headway::SettingError => error; puts error.message; end
      p Headway::Web::Captures.new.list
      FileUtils.rm_rf(there)
    RUBY
    assert_equal ["200\ndirectory is \"here\": the current directory is gone; give an absolute path\n[]\n", ""], [run.out, run.err]
  end

  def test_a_forked_child_does_not_count_under_its_parents_number
    Headway::Metrics.worker = 4
    ask = asked { [Headway::Metrics.worker, Process.pid] }
    assert_equal 1, ask.call.map(&:to_s).uniq.size
    assert_equal "4", Headway::Metrics.worker
    Headway::Metrics.worker = nil
    Headway::Integrations.worker = 5
    Process.wait(fork { exit!(Headway::Metrics.worker == Process.pid.to_s ? 0 : 1) })
    assert_predicate $?, :success?
    assert_equal "5", Headway::Metrics.worker
  ensure
    Headway::Integrations.worker = nil
    Process.kill(:KILL, @other)
    Process.wait(@other)
  end

  def test_a_timeout_while_they_are_put_together_leaves_no_older_answer
    timeout = Class.new(Exception)
    write(Process.ppid, FILE)
    @siblings.families(60)
    write(Process.ppid, FILE.sub("[{}, 5]", "[{}, 55]"))
    assert_raises(timeout) do
      TracePoint.new(:call) { |point| raise timeout if point.method_id == :together }.enable { @siblings.families(60) }
    end
    told = @siblings.families(60).find { |family| family.name == "ruby_gvl_preemptions_total" }
    assert_equal 55, told.series[{ worker: "w" }]
  end

  def test_files_of_the_dead_the_stale_and_the_damaged_are_left_out
    gone = fork { exit!(0) }
    Process.wait(gone)
    write(gone, '["w", []]')
    ['["w", [["ruby_gvl_preem', "[]", "null", '["w", [7]]'].each do |text|
      write(Process.ppid, text)
      assert_equal [Process.pid.to_s], workers, text
    end
    refute_path_exists file_of(gone)

    write(Process.ppid, FILE)
    assert_equal 2, workers.size
    File.utime(Time.now - 3600, Time.now - 3600, file_of(Process.ppid))
    assert_equal 1, workers.size
    FileUtils.rm_rf(@directory)
    assert_equal 1, workers.size
  end

  # As another version might write it, or somebody else who may: no scrape fails for it, and nobody's line gets in.
  def test_a_file_of_another_shape_is_left_out
    odd = ['"a_total", "counter", null, [[{}, 1]]', '7, "counter", "A.", [[{}, 1]]', '"a_total", "counter\\nb_total 1", "A.", [[{}, 1]]',
           '"a_total", "counter", "A.", [[{}, null]]', '"a_total", "counter", "A.", [[{}, "1\\nb_total 2"]]', '"a_total", "counter", "A.", [[7, 1]]',
           '"a_seconds", "histogram", "A.", [[{}, [1, 2]]]', '"a_seconds", "histogram", "A.", [[{}, [[0.1], [1, 2], 0.1, 1]]]',
           '"a_seconds", "histogram", "A.", [[{}, [[0.1], [1], "0", 1]]]', '"a_seconds", "histogram", "A.", [[{}, [[0.1], [1], 0.1, 1, 7]]]']
    odd.each do |family|
      write(Process.ppid, %(["w", [["ruby_gvl_preemptions_total", "counter", "P.", [[{}, 5]]], [#{family}]]]))
      assert_equal [Process.pid.to_s], workers, family
      refute_match(/^[ab]_/, Headway::Metrics::Exposition.text(@siblings.families), family)
    end
    write(Process.ppid, %(["w", [["ruby_gvl_preemptions_total", "counter", "P.", [[{}, 5]]], ["a_seconds", "histogram", "A.", [[{}, [[0.1], [1], 0.05, 1]]]]]]))
    assert_includes Headway::Metrics::Exposition.text(@siblings.families), 'a_seconds_sum{worker="w"} 0.05'
  end

  def test_what_it_writes_it_reads
    Headway::Metrics.request("GET /siblings", running: 1, ready: 0.2, suspended: 0)
    @siblings.stop
    other = fork do
      siblings = Headway::Metrics::Siblings.new(@directory, every: 60)
      Headway::Metrics.worker = 7
      Headway::Metrics.request("GET /siblings", running: 1, ready: 0.2, suspended: 0)
      siblings.instance_variable_get(:@reporter).report
      sleep
    end
    await("its file") { File.exist?(file_of(other)) }
    waits = series("ruby_gvl_request_wait_seconds").select { |labels, _| labels[:request] == "GET /siblings" }
    assert_equal [0.2], waits.values.map { |value| value.is_a?(Headway::Metrics::Distribution) ? value.sum : flunk }.uniq
    assert_equal 2, waits.size
  ensure
    Process.kill(:KILL, other)
    Process.wait(other)
  end
end
