# frozen_string_literal: true

require "trace/trace_case"
require "cli/command_line"
require "report/forms"
require "report/proto_decoder"
require "json"

# From a trace file to each report.
class RealTraceTest < TraceCase
  include CommandLine
  include ReportForms

  def test_every_form
    path = file(known_trace)
    targets = %w[html perfetto firefox collapsed markdown].to_h { |form| [form, File.join(@directory, "out.#{form}")] }
    result = headway("report", *targets.flat_map { |form, out| ["--#{form}", out] }, path, "--json")

    assert_predicate result, :success?, result.to_s
    assert_match(/\A`request` spent 63 % of its 65\.0 ms waiting for the GVL; 94 % of all waits were behind `Report#render` \(.*\)\. Policy fair is on already: `headway advise \S+` says whether more processes help\.\z/, JSON.parse(result.out)["headline"])
    targets.each_value { |out| refute_equal 0, File.size(out), out }
    assert_equal "main;Report#render app/report.rb:17;Array#each 30000\n", File.read(targets["collapsed"])
    assert_includes File.read(targets["markdown"]), "| worker | main | 40.0 ms | 98 % |"
  end

  # A process knows its file's name only, and the reader is elsewhere, mostly.
  def test_the_command_that_a_headline_names_finds_the_traces
    Dir.mkdir(below = File.join(@directory, "out"))
    one, other = %w[a b].map { |name| "out/#{name}.headway" }
    [one, other].each { |name| FileUtils.cp(file(known_trace), File.join(@directory, name)) }

    assert_equal ["`headway advise #{one}`", "`headway advise out`", "`headway advise out`"],
                 ([[one], [one, other], ["out"]].map { |words| headway("report", *words, chdir: @directory).out[/`headway advise [^`]+`/] })
    assert_equal "`headway advise .`", headway("report", ".", chdir: below).out[/`headway advise [^`]+`/]

    FileUtils.mv(File.join(@directory, other), File.join(@directory, other = "out/b.trace"))
    assert_equal "`headway advise FILE`", headway("report", one, other, chdir: @directory).out[/`headway advise [^`]+`/], "in the directory nobody looks for it"
  end

  # The sums of the slices are those of the analysis.
  def test_perfetto_agrees_with_the_analysis
    trace = trace_of(known_trace)
    packets = ProtoDecoder.by_itself(report(:perfetto, trace))[:packet]
    names = packets.flat_map { |packet| packet.dig(:interned_data, 0, :event_names) || [] }.to_h { |entry| [entry[:iid], entry[:name].first] }
    tracks = packets.filter_map { |packet| packet.dig(:track_descriptor, 0) }.filter_map { |track| [track[:uuid], track[:thread]&.first] }.to_h

    trace.to_h[:threads].each do |thread|
      track = tracks.find { |_, found| found && found[:thread_name] == [thread[:name]] }.first
      sums = state_sums(packets, track, names)
      %w[running ready suspended].each { |state| assert_in_delta thread[:"#{state}_s"], sums[state] / 1e9, 1e-6, thread[:name] }
    end
  end

  def test_firefox_samples_stand_where_the_stack_was_seen
    threads = JSON.parse(report(:firefox, trace_of(known_trace)))["threads"]

    assert_equal [[50.0], [30.0]], threads[0]["samples"].values_at("time", "weight")
    wait = threads[1]["markers"]["data"].find { |data| data["type"] == "Wait" }
    assert_equal "main", wait["holder"]
    assert_match(/\Amain 40\.0 ms, nobody .* 1\.0 ms\z/, wait["holders"])
  end

  def test_several_files_on_one_clock
    later = { pid: 5000, wall_ns: TraceEncoder::HEADER[:wall_ns] + 500_000_000 }
    result = headway("report", file(known_trace, "a.headway"), file(known_trace(**later), "b.headway"), "--json")
    data = JSON.parse(result.out)

    assert_equal [4242, 5000], data["processes"].map { |process| process["pid"] }
    assert_in_delta 0.5, data["processes"][1]["start_s"]
    assert_equal 4, data["threads"].size
  end

  # Every key that a trace's analysis has.
  def test_json_is_documented
    page = File.read(File.expand_path("../../docs/report-json.md", __dir__))
    keys = keys_of(JSON.parse(report(:json, trace_of(known_trace.bytes[0...-40]))))

    assert_includes keys, "waited_for"
    keys.each { |key| assert_includes page, "`#{key}`" }
  end

  def test_the_summary_and_its_warnings
    result = headway("report", file(known_trace))

    assert_predicate result, :success?
    assert_match(/^  worker +10\.0 ms +41\.0 ms +29\.0 ms /, result.out)
    assert_equal ["headway: warning: process 4242: 5 events were dropped while recording, so times around the gaps are guesses\n",
                  "headway: warning: process 4242: 2 blame samples were folded into other stacks to bound memory\n"], result.err.lines
  end

  def test_damage_is_a_warning
    bytes = known_trace.bytes
    bytes.setbyte(-14, bytes.getbyte(-14) ^ 1) # in the block before the end
    result = headway("report", file(bytes))

    assert_predicate result, :success?
    assert_match(/\Aheadway: warning: process 4242: the trace is damaged at byte \d+ \(a block's checksum is wrong\); the report is made of what could be read$/,
                 result.err)
    assert_match(/waiting/, result.out)
  end

  # Between two blocks, as of a process that was killed, or in one, as of one that was writing just then. Said once, in the same
  # words, wherever a report has a place for it.
  def test_a_missing_end_is_no_damage_in_any_report
    whole = known_trace.bytes
    { whole[0...-12] => "it had written", whole[0...-40] => "it had written, without its last block, of which only a part is there",
      whole[0...-5] => "it had written, without its last block, of which only a part is there" }.each do |bytes, ending|
      words = "process 4242: its trace has no end: it was killed, called exit!, became another program or goes on, or the file was cut; " \
              "the report is made of what #{ending}"
      targets = %w[html markdown firefox].to_h { |form| [form, File.join(@directory, "out.#{form}")] }
      result = headway("report", *targets.flat_map { |form, out| ["--#{form}", out] }, file(bytes), "--json")

      assert_includes result.err.lines, "headway: warning: #{words}\n"
      assert_equal words, JSON.parse(result.out)["notes"].first
      targets.each_value { |out| assert_includes File.read(out), words.delete("`"), out }
      refute_match(/damaged/, result.err)
    end
  end

  # As of a server's workers that were killed: one sentence for all of them.
  def test_many_missing_ends_are_one_note
    directory = File.join(@directory, "workers")
    Dir.mkdir(directory)
    bytes = (1..5).map { |pid| TraceEncoder.new(pid: pid).events([ms(1), 1, :known, 2], [ms(2), 1, :suspended]).bytes }
    written = bytes.each_with_index.map { |trace, i| File.binwrite(File.join(directory, "#{i + 1}.headway"), i == 4 ? trace[0...-3] : trace) }
    assert_equal 5, written.size
    said = "headway: warning: 5 processes (1, 2, 3 and 2 more): their traces have no end: each was killed, called exit!, became another " \
           "program or goes on, or the file was cut; the report is made of what they had written, some without their last block, of which " \
           "only a part is there\n"
    err = headway("report", directory).err
    assert_includes err.lines, said
    refute_match(/its trace has no end/, err)

    %w[4 5].each { |name| File.delete(File.join(directory, "#{name}.headway")) }
    assert_equal 3, headway("report", directory).err.scan("its trace has no end").size
  end

  def test_what_is_no_trace
    { "" => /is empty/, "hello" * 100 => /is no Headway trace/,
      TraceEncoder.new(version: 99).end.bytes => /version 99.*a newer Headway is needed/ }.each do |content, words|
      assert_bad_usage words, headway("report", file(content))
    end
    assert_bad_usage(/No such file or directory/, headway("report", "/nonexistent"))
    assert_bad_usage(/no trace that can be read in directory/, headway("report", @directory))
    assert_bad_usage(/is no Headway trace/, headway("report", file(known_trace, "good.headway"), file("nonsense" * 20, "bad.headway")))
  end

  # Some of /proc can't be listed, not even by root; newer Rubies raise there, older ones pass it over.
  def test_a_directory_that_cannot_be_listed_is_named
    assert_bad_usage(%r{\Aheadway: (directory /proc/1 can't be read: Permission denied|no trace that can be read in directory /proc/1)}, headway("report", "/proc/1"))
  end

  # A thread a request, for a day: none may cost a look at all others.
  def test_threads_that_are_too_many_are_left_out_and_said_to_be
    encoder = TraceEncoder.new
    (1..65_600).each_slice(50_000) { |numbers| encoder.events(*numbers.map { |number| [ms(1) + number, number, :known, 0] }) }
    trace = trace_of(encoder.events(*(65_530..65_600).map { |number| [ms(2), number, :ready] }).end)

    assert_includes report(:text, trace), "and 65516 more that waited less"
    assert_equal ["process 4242: 128 events are left out, those of threads that were too many to be read"],
                 Headway::Report::Document.new(trace).to_h[:notes]
  end

  def test_files_may_be_called_anything
    2.times { |number| file(known_trace(pid: 7).bytes[0...-12], "a\n\e[31m#{number}.headway") }
    file("nonsense", "b\nc.headway")
    result = headway("report", @directory)

    assert_predicate result, :success?
    assert_includes result.err, "b?c.headway is left out: is no Headway trace"
    assert_includes result.err, "process 7, a??[31m0.headway: its trace has no end"
    assert(result.err.lines.all? { |line| line.start_with?("headway: warning: ") }, result.err)
    refute_includes result.out, "\e"
  end

  def test_files_that_cannot_be_read_may_be_called_anything
    path = file("nonsense", "a\n\e]0;b\a.headway")
    told = "#{@directory}/a??]0;b?.headway: is no Headway trace\n"

    assert_equal "headway: #{told}", headway("report", path).err
    assert_equal "headway: #{told}", headway("predict", path).err
    assert_equal "headway: no trace that can be read in directory #{@directory}: #{told}", headway("report", @directory).err
  end

  def test_a_directory_in_a_locale_that_cannot_read_its_name
    directory = File.join(@directory, "caf\u00e9")
    Dir.mkdir(directory)
    known = headway("report", file(known_trace, "caf\u00e9/\u00fc.headway"))
    [{}, { "LC_ALL" => "C" }].each { |locale| assert_equal known.out, headway("report", directory, env: locale).out }
  end

  # Firefox' form reads them again, for the times of the samples.
  def test_more_files_than_may_be_open
    40.times { |number| file(known_trace, "#{number}.headway") }
    out = %w[few.json many.json].map { |name| File.join(@directory, name) }
    [30, 256].zip(out) do |most, path|
      result = headway("report", @directory, "--firefox", path, pass: { rlimit_nofile: most })
      assert_predicate result, :success?, result.to_s
    end
    assert_equal(*out.map { |path| File.read(path) })
  end

  def test_a_file_counts_once
    path = file(known_trace)
    once = headway("report", path).out
    refute_empty once
    assert_equal once, headway("report", path, "#{File.dirname(path)}/./#{File.basename(path)}").out
    assert_equal once, headway("report", path, @directory).out
  end

  def test_outputs_that_cannot_be
    path = file(known_trace)

    assert_bad_usage(/--html #{path} is a trace to be read/, headway("report", path, "--html", path))
    assert_equal known_trace.bytes, File.binread(path)
    other = file(known_trace, "other.headway")
    assert_bad_usage(/--html #{other} is a trace, which would be lost/, headway("report", "--html", other, path)) # *.headway, and no name before it
    assert_equal known_trace.bytes, File.binread(other)
    return unless File.exist?("/dev/full")

    result = headway("report", path, "--json", "--perfetto", "/dev/full")
    assert_equal 2, result.status.exitstatus
    assert_match(%r{^headway: cannot write /dev/full: No space left on device$}, result.err)
  end

  def test_a_report_that_cannot_be_written_leaves_the_one_before
    path = file(known_trace)
    out = File.join(@directory, "out.html")
    File.write(out, "the one before")
    File.chmod(0o640, out)
    File.symlink(out, link = File.join(@directory, "link.html"))
    trap("XFSZ", "IGNORE")
    result = headway("report", path, "--html", link, pass: { rlimit_fsize: 10_000 })

    assert_equal 2, result.status.exitstatus
    assert_match(/^headway: cannot write #{link}: File too large$/, result.err)
    assert_equal "the one before", File.read(out)
    assert_equal [File.basename(path), "link.html", "out.html"].sort, Dir.children(@directory).sort

    assert_predicate headway("report", path, "--html", link), :success?
    assert_operator File.size(out), :>, 10_000
    assert_equal [0o640, true], [File.stat(out).mode & 0o777, File.symlink?(link)]
  ensure
    trap("XFSZ", "DEFAULT")
  end

  def test_a_trace_of_nothing
    result = headway("report", file(TraceEncoder.new.end), "--html", out = File.join(@directory, "out.html"))

    assert_quiet_success result
    assert_includes File.read(out), "The trace is empty"
  end

  private

  def state_sums(packets, track, names)
    sums = Hash.new(0.0)
    begun = nil
    packets.each do |packet|
      event = packet.dig(:track_event, 0)
      next unless event && event[:track_uuid] == track

      case event[:type]
      when [1.0] then begun = [names.fetch(event[:name_iid]), packet[:timestamp].first]
      when [2.0] then sums[begun.first] += packet[:timestamp].first - begun.last
      end
    end
    sums
  end
end
