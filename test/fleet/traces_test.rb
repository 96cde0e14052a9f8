# frozen_string_literal: true

require "cli/command_line"
require "etc"
require "headway/recorder"
require "headway/trace"
require "json"
require "trace/trace_case"

# Traces of many processes and machines in one directory.
class FleetTracesTest < TraceCase
  include CommandLine

  FileName = Headway::Recorder::FileName

  def test_each_process_writes_a_file_of_its_own_there
    nap = "Thread.new { sleep 0.01 }.join"
    code = "2.times { Process.wait(fork { #{nap} }) }; system(RbConfig.ruby, '-e', #{nap.dump}); #{nap}"
    page = File.join(@directory, "page.html")
    2.times { assert_empty headway_ruby(code, "--record=#{@directory}", "--report=#{page}").err.lines.grep_v(/report written/) }
    names = Dir.children(@directory).grep(/headway\z/)
    assert_equal 8, names.size, names.inspect
    host = Regexp.escape(Etc.uname[:nodename].gsub(/[^\w.-]+/, "_"))
    names.each { |name| assert_match(/\A#{host}-\d+-\d{8}T\d{9}Z(\.\d+)*\.headway\z/, name) }

    report = JSON.parse(headway("report", @directory, "--json").out)
    assert_equal names.sort, report["processes"].map { |process| process["file"] }
    assert_equal [nil], report["processes"].map { |process| process["damage"] }.uniq
  end

  def test_names
    assert_equal "/x/100%-#{Process.pid}.headway", FileName.resolve("/x/100%%-%p.headway")
    assert_equal "/%h/a", FileName.resolve("/%h/a"), "directories are taken as they are"
    assert_match(%r{\A/nosuch/[^/]+-#{Process.pid}-\d{8}T\d{9}Z\.headway\z}, FileName.resolve("/nosuch/"))
    assert_match(/\Aa\.b-.+-50%\z/, "a.b-#{Process.pid}-50%"[/#{FileName.expression("a.b-%p-50%%")}/])
    assert_match(/file is "\/x\/%q": %q is no place/, assert_raises(Headway::SettingError) { FileName.resolve("/x/%q") }.message)
    assert_raises(Headway::SettingError) { Headway::Recorder.start(file: "/x/a%") }
  end

  def test_what_cannot_be_read_is_named_and_left_out
    FileUtils.mkdir_p(File.join(@directory, "web-2"))
    file(known_trace(pid: 1), "web-1.headway")
    file(known_trace(pid: 1), "web-2/web-2.headway")
    file(known_trace(pid: 7).bytes[0..-30], "web-2/short.headway")
    file(known_trace(pid: 8).bytes.tap { _1.setbyte(-30, _1.getbyte(-30) ^ 1) }, "web-2/spoiled.headway")
    file("nonsense", "bad.headway")
    file("", "empty.headway")
    file("nonsense", "notes.txt")
    run = headway("report", @directory)
    assert run.status.success?, run.to_s
    assert_match(/^headway: warning: #{@directory}\/bad\.headway is left out: \S/, run.err)
    assert_match(/empty\.headway is left out/, run.err)
    assert_match(/process 7, short\.headway: its trace has no end/, run.err)
    assert_match(/process 8, spoiled\.headway: the trace is damaged at byte \d+/, run.err)
    refute_match(/notes/, run.err)
    # Two machines have a process 1.
    assert_match(/worker \(process 1 of web-1\.headway\)/, run.out)
    assert_match(/worker \(process 1 of web-2\.headway\)/, run.out)
    assert_equal 4, run.out.scan(/^Headway .*: process \d/).size
  end

  def test_nothing_to_be_read
    assert_bad_usage(/no trace that can be read in directory #{@directory}: there is no \*\.headway/, headway("report", @directory))
    file("nonsense", "bad.headway")
    assert_bad_usage(%r{no trace that can be read in directory #{@directory}: #{@directory}/bad\.headway: \S}, headway("report", @directory))
  end

  def test_many
    120.times { |number| file(known_trace(pid: 1000 + number), "web-#{number}.headway") }
    run = headway("report", @directory)
    assert run.status.success?, run.to_s
    assert_match(/^and 110 more processes$/, run.out)
    assert_match(/events: 1800, dropped 600/, run.out)
    assert_match(/and 220 more that waited less/, run.out)
  end
end
