# frozen_string_literal: true

require "test_helper"
require "stringio"
require "json"
require "headway/report"
require "report/made_trace"

class FirefoxTest < Minitest::Test
  def test_every_table_has_its_length_and_every_index_its_row
    [MadeTraces.stalled, MadeTraces.two_processes, MadeTraces.idle, MadeTraces.empty].each do |trace|
      profile = profile(trace)

      refute_empty profile["threads"]
      profile["threads"].each { |thread| check_tables(thread, profile["meta"]["categories"].size) }
    end
  end

  def test_what_the_viewer_goes_by
    meta = profile(MadeTraces.stalled)["meta"]

    assert_equal 48, meta["preprocessedProfileVersion"]
    assert_in_delta 1_767_323_045_678.0, meta["startTime"]
    assert_equal "ruby app.rb", meta["product"]
    assert_includes meta["categories"].map { |category| category["color"] }, "grey"
    assert(meta["categories"].all? { |category| category["subcategories"] == ["Other"] })
    assert_equal %w[GC Mark Wait], meta["markerSchema"].map { |schema| schema["name"] }.sort
  end

  def test_threads
    threads = profile(MadeTraces.two_processes)["threads"]

    assert_equal [["main (process 100)", "100", true], ["worker (process 100)", "100", false], ["main (process 200)", "200", true]],
                 threads.map { |thread| thread.values_at("name", "pid", "isMainThread") }
    assert_equal [0.0, 0.0, 1000.0], threads.map { |thread| thread["registerTime"] }
    assert_equal [2000.0] * 3, threads.map { |thread| thread["unregisterTime"] }
    assert_equal 3, threads.map { |thread| thread["tid"] }.uniq.size
  end

  def test_markers
    main, crunch, worker = profile(MadeTraces.stalled)["threads"]

    assert_equal [["GC", 600.0, 610.0], ["GC", 1000.0, 1020.0]], markers(main).map { |marker| marker.first(3) }
    assert_equal [["Wait", 0.0, 500.0, "main"], ["Wait", 1900.0, 2000.0, "worker-3"]],
                 markers(crunch).map { |marker| [*marker.first(3), marker.last["holder"]] }
    assert_equal [["Wait", 400.0, 500.0, "main"], ["Wait", 900.0, 1900.0, "crunch"]],
                 markers(worker).select { |name,| name == "Wait" }.map { |marker| [*marker.first(3), marker.last["holder"]] }
    assert_includes markers(worker), ["request", 900.0, 2200.0, { "type" => "Mark" }]
    assert_includes markers(worker), ["paid", 2050.0, nil, { "type" => "Mark" }]
  end

  def test_samples_weigh_what_the_blame_does
    crunch = profile(MadeTraces.stalled)["threads"][1]
    samples = crunch["samples"]

    assert_equal "tracing-ms", samples["weightType"]
    assert_equal [900.0, 100.0], samples["weight"]
    assert_equal samples["time"].sort, samples["time"]
    assert_equal [["<main>:3", "block in Report#page:40", "Report#render:12", "Array#each:42"], ["<main>:3", "Totals.add:7"]],
                 samples["stack"].map { |stack| frames(crunch, stack) }
  end

  def test_the_longest_waits_are_shown_when_there_are_too_many
    segments = [0.1, 0.3, 0.2].flat_map { |wait| [[:ready, wait], [:running, 0.01]] }
    trace = MadeTrace.new(threads: [{ name: "a", segments: segments }])
    output = StringIO.new
    require "headway/report/firefox"
    Headway::Report::Firefox.new(Headway::Report::Document.new(trace), most_waits: 2).write(output)

    profile = JSON.parse(output.string)

    assert_equal [300.0, 200.0], markers(profile["threads"].first).map { |_, from, to| (to - from).round(3) }
    assert_includes profile["meta"]["extra"].first["entries"].map { |entry| entry["value"] },
                    "the 1 shortest waits are left out"
  end

  private

  def profile(trace)
    output = StringIO.new
    Headway::Report.firefox(trace, output)
    JSON.parse(output.string)
  end

  def check_tables(thread, categories)
    strings = thread["stringArray"].size
    check_table thread["stackTable"], "frame" => thread["frameTable"]["length"], "category" => categories
    thread["stackTable"]["prefix"].each_with_index { |prefix, index| assert_operator prefix || -1, :<, index }
    check_table thread["frameTable"], "func" => thread["funcTable"]["length"], "category" => categories
    check_table thread["funcTable"], "name" => strings, "fileName" => strings
    check_table thread["resourceTable"], {}
    check_table thread["nativeSymbols"], {}
    check_table thread["samples"], "stack" => thread["stackTable"]["length"]
    check_table thread["markers"], "name" => strings, "category" => categories
  end

  def check_table(table, indices)
    table.each_value { |column| assert_equal table["length"], column.size if column.is_a?(Array) }
    indices.each { |column, size| table[column].each { |index| assert_includes 0...size, index } }
  end

  def markers(thread)
    table = thread["markers"]
    table["name"].zip(table["startTime"], table["endTime"], table["data"])
                 .map { |name, *rest| [thread["stringArray"][name], *rest] }
  end

  def frames(thread, stack)
    return [] if stack.nil?

    frame = thread["stackTable"]["frame"][stack]
    function = thread["frameTable"]["func"][frame]
    name = thread["stringArray"][thread["funcTable"]["name"][function]]
    [*frames(thread, thread["stackTable"]["prefix"][stack]), "#{name}:#{thread["frameTable"]["line"][frame]}"]
  end
end
