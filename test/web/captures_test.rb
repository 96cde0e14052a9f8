# frozen_string_literal: true

require "web/mounted"
require "headway/report"

# Traces captured through the page: made, listed, sent, reported, bounded.
class WebCapturesTest < Minitest::Test
  include Mounted

  CHURN = "loop { File.write(ARGV[0], '') && File.delete(ARGV[0]) }"

  def setup
    super
    Headway.start
  end

  def record
    assert Headway::Recorder.start(mode: :flight, events: 5000)
    3.times.map { Thread.new { 20.times { sleep 0.0005 } } }.each(&:join)
  end

  def capture(web) = post(web, "/captures", { pid: Process.pid })

  def test_a_capture_is_listed_sent_and_reported
    record
    web = web()
    response = capture(web)
    assert_equal 201, response.status, response.body
    answer = JSON.parse(response.body, symbolize_names: true)
    name = answer[:name]
    assert_equal [[name, Process.pid]], answer[:captures].map { |row| row.values_at(:name, :pid) }
    assert_equal 0o700, File.stat(@captures).mode & 0o777
    download = get(web, "/captures/#{name}")
    assert_equal %(attachment; filename="#{name}"), download["content-disposition"]
    copy = File.join(@folder, "copy.headway")
    File.binwrite(copy, download.body)
    assert_equal Process.pid, Headway::Trace.open(copy).to_h[:processes].first[:pid]
    report = get(web, "/captures/#{name}/report")
    assert_equal [200, "text/html; charset=utf-8"], [report.status, report["content-type"]]
    own = report.body[/Content-Security-Policy" content="([^"]+)"/, 1]
    assert_equal "sandbox allow-scripts; #{own}; frame-ancestors 'none'", report["content-security-policy"]
    refute_includes report["content-security-policy"], "unsafe"
    assert_equal report.body, get(web, "/captures/#{name}/report").body
    refute Dir.children(@captures).any? { |file| file.end_with?(".part") }
  end

  def test_nothing_but_captures_is_sent
    record
    web = web()
    name = JSON.parse(capture(web).body)["name"]
    File.write(File.join(@captures, "secret.txt"), "secret")
    File.write(File.join(@folder, "out.headway"), "secret")
    linked = "1-20260101T000000.000Z.headway"
    File.symlink("/etc/passwd", File.join(@captures, linked))
    get(web, "/captures/#{name}/report")
    ["../out.headway", "..%2fout.headway", "%2e%2e/out.headway", "secret.txt", "lock", "#{name}.html", "#{name}/../secret.txt", "/etc/passwd",
     "#{name}\n", ".", "..", "", linked].each do |path|
      ["", "/report"].each do |what|
        response = get(web, "/captures/#{path}#{what}")
        assert_equal [404, "There is nothing here.\n"], [response.status, response.body], path
      end
    end
  end

  def test_a_report_that_is_a_link_is_made_anew
    record
    web = web()
    name = JSON.parse(capture(web).body)["name"]
    page = File.join(@captures, "#{name}.html")
    File.symlink("/etc/passwd", page)
    assert_equal [200, false], [get(web, "/captures/#{name}/report").status, File.symlink?(page)]
  end

  def test_without_a_flight_recorder_it_says_what_to_do
    response = capture(web)
    assert_equal 422, response.status
    assert_equal "no flight recorder runs in this process: start one here or with Headway::Recorder.start(mode: :flight)", error_of(response)
    assert_equal ["lock"], Dir.children(@captures)
  end

  def test_a_flight_recorder_is_started_and_stopped
    web = web(controls: ->(_) { true })
    recorded = -> { state(web)[:processes].find { |process| process[:pid] == Process.pid }[:recorder] }
    assert_nil recorded.call
    2.times do
      assert_equal 200, record_through(web, true).status
      assert_equal [:flight, nil, "flight"], Headway::Recorder.stats.values_at(:mode, :file) << recorded.call
      assert_equal [422, "a recording is under way in this process: stop it first"], record_through(web, true).then { |answer| [answer.status, error_of(answer)] }
      assert_equal 201, capture(web).status
      assert_equal 200, record_through(web, false).status
      assert_equal [nil, nil], [Headway::Recorder.stats[:mode], recorded.call]
    end
    assert_equal [422, "nothing is recorded in this process"], record_through(web, false).then { |answer| [answer.status, error_of(answer)] }
    [nil, "true", 1, { "file" => "/tmp/x" }].each { |on| assert_equal 400, record_through(web, on).status, on.inspect }
  end

  def test_a_stream_is_left_alone
    Headway::Recorder.start(file: File.join(@folder, "out.headway"))
    web = web(controls: ->(_) { true })
    answers = [true, false].map { |on| error_of(record_through(web, on)) }
    assert_equal ["a recording is under way in this process: stop it first", "process #{Process.pid} streams to a file: whoever started that stops it"], answers
    assert_equal [:stream, "stream"], [Headway::Recorder.stats[:mode], state(web)[:processes].first[:recorder]]
  end

  def test_a_stream_whose_disk_was_full_makes_place
    before = Process.getrlimit(:FSIZE)
    previous = trap("XFSZ", "IGNORE")
    web = web(controls: ->(_) { true })
    client = Headway::Control::Client.new(Process.pid, Headway::Control.path)
    Process.setrlimit(:FSIZE, 4096, before.last)
    Headway::Recorder.start(file: File.join(@folder, "out.headway"))
    3000.times { Headway.mark("more") } while Headway::Recorder.recording?
    Process.setrlimit(:FSIZE, *before)
    assert_equal "File too large", client.recorder[:failure]
    assert_nil state(web)[:processes].first[:recorder]
    assert_equal 200, record_through(web, true).status
    assert_equal ["flight", nil], client.recorder.values_at(:mode, :failure)
  ensure
    Process.setrlimit(:FSIZE, *before)
    trap("XFSZ", previous || "DEFAULT")
  end

  def test_one_at_a_time
    record
    web = web()
    name = JSON.parse(capture(web).body)["name"]
    File.open(File.join(@captures, "lock")) do |lock|
      lock.flock(File::LOCK_EX)
      assert_equal 409, capture(web).status
      assert_equal 409, get(web, "/captures/#{name}/report").status
      assert_equal 200, get(web, "/captures/#{name}").status
    end
    assert_equal 201, capture(web).status
  end

  # A server's own timeout, for one, which is then to be what it was.
  def test_what_ends_the_loading_of_the_report_is_raised_and_the_next_request_has_it
    result = Harness::RubyProcess.eval(<<~RUBY, @captures, env: ENVIRONMENTS.to_h { |name| [name, nil] })
      require "headway"
      require "rack"
      Headway.start
      Headway::Recorder.start(mode: :flight, events: 1000)
      captures = Headway::Web::Captures.new(ARGV.first)
      name = captures.take(Headway::Control::Client.new(Process.pid, Headway::Control.path))
      late = Class.new(RuntimeError)
      loading = TracePoint.new(:class) do |point|
        next unless point.path.end_with?("headway/report/labels.rb")
        loading.disable
        raise late
      end
      loading.enable
      begin
        captures.report(name)
      rescue StandardError => error
        p error.class == late ? :late : error
      end
      p captures.report(name).first
    RUBY
    assert_equal ":late\n200\n", result.out, result.to_s
  end

  def test_the_oldest_go
    record
    web = web()
    names = Array.new(12) { JSON.parse(capture(web).body)["name"].tap { sleep 0.002 } }
    get(web, "/captures/#{names.last}/report")
    assert_equal names.last(10).reverse, JSON.parse(capture(web).body)["captures"].drop(1).map { |row| row["name"] }.then { |kept| kept + [names[2]] }
    [".part", ".part.part", ".html.part.123.part"].each do |draft|
      File.write(File.join(@captures, "#{names.last}#{draft}"), "left by a process that was killed")
    end
    capture(web)
    assert_equal 10, Dir.children(@captures).grep(/\.headway\z/).size
    assert_empty Dir.children(@captures).grep(/\.part\z/)
  end

  # The room that a report takes is that of older captures and their reports, but not of the one it is about.
  def test_for_a_report_the_oldest_go
    record
    web = web()
    names = Array.new(4) { JSON.parse(capture(web).body)["name"].tap { sleep 0.002 } }
    bytes = names.sum { |name| File.size(File.join(@captures, name)) }
    with_constant(Headway::Web::Captures, :ALL_BYTES, Headway::Web::Captures::FILE_BYTES + bytes - 1) do
      assert_equal 200, get(web, "/captures/#{names.first}/report").status
    end
    assert_equal [*names.values_at(0, 2, 3), "#{names.first}.html", "lock"].sort, Dir.children(@captures).sort
    with_constant(Headway::Web::Captures, :ALL_BYTES, Headway::Web::Captures::FILE_BYTES) do
      assert_equal 200, get(web, "/captures/#{names.last}/report").status
    end
    assert_equal [names.last, "#{names.last}.html", "lock"].sort, Dir.children(@captures).sort
  end

  # Two processes make and remove theirs, as fast as they can.
  def test_what_others_remove_meanwhile_hides_none
    Dir.mkdir(@captures, 0o700)
    kept = "1-20260101T000000.000Z.headway"
    File.write(File.join(@captures, kept), "")
    others = [2, 3].map { |number| Process.spawn(RbConfig.ruby, "-e", CHURN, File.join(@captures, kept.sub("1", number.to_s))) }
    captures = Headway::Web::Captures.new(@captures)
    Thread.pass until captures.list.size == 3
    10_000.times { assert_includes captures.list.map { |row| row[:name] }, kept }
  ensure
    others&.each { |pid| Process.kill(:KILL, pid) && Process.wait(pid) }
  end

  def test_one_that_is_too_large_is_not_kept
    record
    captures = Headway::Web::Captures.new(@captures)
    with_constant(Headway::Web::Captures, :FILE_BYTES, 100) do
      error = assert_raises(Headway::Web::Captures::Error) { captures.take(Headway::Control::Client.new(Process.pid, Headway::Control.path)) }
      assert_match(/\A\d+ bytes are too much, 100 are kept at most: give the flight recorder fewer events\z/, error.message)
    end
    assert_equal ["lock"], Dir.children(@captures)
  end

  # As in a container whose file system is read-only: the application must start all the same.
  def test_without_a_place_for_temporary_files_there_is_a_page
    here = true
    Dir.singleton_class.prepend(Module.new { define_method(:tmpdir) { here ? raise(ArgumentError, "no directory will do") : super() } })
    assert_equal 200, get(web(directory: nil), "/").status
  ensure
    here = false
  end

  def test_a_directory_that_turned_bad
    record
    web = web()
    name = JSON.parse(capture(web).body)["name"]
    File.chmod(0o755, @captures)
    assert_equal [500, 404], [capture(web).status, get(web, "/captures/#{name}").status]
    File.chmod(0o700, @captures)
    File.write(File.join(@captures, name), "no trace")
    assert_equal 422, get(web, "/captures/#{name}/report").status
  end

  private

  def record_through(web, on) = post(web, "/recorder", { pid: Process.pid, on: on })

  def with_constant(owner, name, value)
    before = owner.const_get(name)
    owner.send(:remove_const, name)
    owner.const_set(name, value)
    yield
  ensure
    owner.send(:remove_const, name)
    owner.const_set(name, before)
  end
end
