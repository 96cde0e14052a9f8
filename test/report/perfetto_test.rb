# frozen_string_literal: true

require "test_helper"
require "stringio"
require "headway/report"
require "report/made_trace"
require "report/proto_decoder"

class PerfettoTest < Minitest::Test
  BEGIN_SLICE = 1
  END_SLICE = 2
  INSTANT = 3

  def test_protoc_and_the_other_decoder_agree
    skip "there is no protoc" unless ProtoDecoder.protoc?

    [MadeTraces.stalled, MadeTraces.two_processes, MadeTraces.empty, odd_names].each do |trace|
      bytes = encode(trace)

      assert_equal ProtoDecoder.by_itself(bytes), ProtoDecoder.by_protoc(bytes)
    end
  end

  def test_tracks
    tracks = decode(MadeTraces.two_processes).tracks.values

    assert_equal %w[100 200], tracks.filter_map { |track| track[:process]&.first&.dig(:pid, 0)&.to_i&.to_s }
    threads = tracks.filter_map { |track| track[:thread]&.first }
    assert_equal [["main (process 100)", 100.0], ["worker (process 100)", 100.0], ["main (process 200)", 200.0]],
                 threads.map { |thread| [thread[:thread_name].first, thread[:pid].first] }
    assert_equal 3, threads.map { |thread| thread[:tid] }.uniq.size
    assert_equal ["ruby app.rb", "ruby app.rb"], tracks.filter_map { |track| track[:process]&.first&.dig(:process_name, 0) }
  end

  def test_every_segment_is_a_slice_at_its_time
    trace = MadeTraces.stalled
    slices = decode(trace).slices

    trace.to_h[:threads].each do |thread|
      expected = trace.spans(thread.merge(segments: segments(trace, thread[:id])))
                      .reject { |_, _, state| state == :absent }
                      .map { |from, to, state| [state.to_s, (from * 1e9).round, (to * 1e9).round] }

      assert_equal expected, slices.fetch(thread[:name]).map { |slice| slice.first(3) }
    end
  end

  def test_a_wait_says_who_held_the_gvl
    slices = decode(MadeTraces.stalled).slices

    assert_equal [{ "main" => 100.0 }, { "crunch" => 1000.0 }],
                 slices.fetch("worker-3").select { |name,| name == "ready" }.map(&:last)
    assert_equal [{ "main" => 500.0 }, { "worker-3" => 100.0 }],
                 slices.fetch("crunch").select { |name,| name == "ready" }.map(&:last)
    assert_equal [{}], slices.fetch("main").map(&:last).uniq
  end

  def test_a_wait_behind_several_and_nobody
    trace = MadeTrace.new(threads: [{ name: "a", segments: [[:running, 0.2], [:suspended, 1.0]] },
                                    { name: "b", segments: [[:suspended, 0.3], [:running, 0.6]] },
                                    { name: "c", segments: [[:ready, 1.0], [:running, 0.1]] }])
    wait = decode(trace).slices.fetch("c").first.last

    assert_equal ["b", "nobody (the GVL was free)", "a"].sort, wait.keys.sort
    assert_equal "b", wait.keys.first
    assert_equal [600.0, 200.0, 200.0], [wait["b"], wait["a"], wait["nobody (the GVL was free)"]]
  end

  def test_collections
    slices = decode(MadeTraces.stalled).slices

    assert_equal [["GC", 600_000_000, 610_000_000, {}], ["GC", 1_000_000_000, 1_020_000_000, {}]], slices.fetch("ruby app.rb/GC")
  end

  # crossing begins in request and ends after it, so it has a track of its own.
  def test_marks_nest
    decoded = decode(MadeTraces.stalled)
    marks = decoded.slices.select { |track, _| track == "worker-3/marks" }.values.flatten(1)

    assert_equal %w[crossing render request], marks.map(&:first).sort
    assert_equal [["paid", 2_050_000_000]], decoded.instants
    assert_equal 2, decoded.tracks.count { |_, track| track[:name] == ["marks"] }
    assert_equal [900_000_000, 2_200_000_000], marks.assoc("request")[1, 2]
  end

  def test_an_empty_trace_and_odd_names
    assert_empty decode(MadeTraces.empty).slices
    names = decode(odd_names).slices.keys

    assert_includes names, "é ünï"
    assert(names.all?(&:valid_encoding?))
  end

  # Each thread's lane is encoded by a call of its own.
  def test_what_a_lane_costs_does_not_grow_with_the_threads_there_are
    few, many = [10, 200_000].map do |threads|
      entries = ["e" * threads, [*1..threads].pack("L*")]
      holds = Headway::Native::Traces::Holds.new([[0, "\x04", 0]])
      best_cpu_time { 200.times { holds.perfetto("\x04", 0, Array.new(7, ""), *entries) { nil } } }
    end
    assert_operator many, :<, few * 50, "20,000 times as many threads"
  end

  def test_the_heap_may_be_compacted_while_a_lane_is_encoded
    lane = "\x04\x05\x06" * 30_000 # comes in several parts
    whole, compacted = [proc {}, proc { compact }].map do |between|
      junk = Array.new(100_000) { |number| "junk #{number}" } # so that what comes next is at the heap's end, and moves
      pieces = Array.new(7) { |number| (number + 97).chr * 20 }
      junk.clear
      parts = []
      holds = Headway::Native::Traces::Holds.new([[0, lane, 0]])
      holds.perfetto(lane, 0, pieces, "entry", [5, 5].pack("L*")) { |bytes| between.call(parts << bytes) }
      parts
    end
    assert_operator whole.size, :>, 1
    assert_equal whole.map(&:hash), compacted.map(&:hash)
  end

  private

  # And what was free afterwards isn't.
  def compact
    GC.compact if GC.respond_to?(:compact)
    Array.new(100_000) { |number| "other #{number}" }
  end

  def best_cpu_time
    Array.new(3) do
      before = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
      yield
      Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) - before
    end.min
  end

  def odd_names
    MadeTrace.new(threads: ["é ünï", "\xff\xfe", "a\"b\\c\nd", ""].map { |name| { name: name, segments: [[:running, 0.1]] } },
                  marks: [{ thread: 0, name: "\xff", start_s: 0.0, end_s: 0.1 }])
  end

  def segments(trace, thread)
    trace.instance_variable_get(:@threads)[thread][:segments]
  end

  def encode(trace)
    output = StringIO.new("".b)
    Headway::Report.perfetto(trace, output)
    output.string
  end

  def decode(trace)
    bytes = encode(trace)
    Decoded.new(ProtoDecoder.protoc? ? ProtoDecoder.by_protoc(bytes) : ProtoDecoder.by_itself(bytes))
  end

  # What the viewer would make of the packets: it sorts them by time, those of one time in the file's order.
  class Decoded
    attr_reader :tracks, :instants

    def initialize(trace)
      @packets = trace[:packet]
      raise "the first packet does not begin the sequence" unless @packets.first[:sequence_flags] == [1.0]

      @tracks = @packets.filter_map { |packet| packet[:track_descriptor]&.first }.to_h { |track| [track[:uuid].first, track] }
      @names = {}
      @categories = {}
      @arguments = {}
      @instants = []
    end

    # @return [Hash{String => Array}] by track [name, from_ns, to_ns, holders]
    def slices
      open = Hash.new { |hash, track| hash[track] = [] }
      found = Hash.new { |hash, track| hash[track] = [] }
      events.sort_by.with_index { |event, index| [event[:time], index] }.each do |event|
        take(event, open[event[:track]], found[label(event[:track])])
      end
      raise "slices without an end: #{open}" unless open.values.all?(&:empty?)

      found.default_proc = nil
      found.transform_values { |slices| slices.sort_by { |slice| slice[1] } }
    end

    private

    # In the file's order, because a name has to be known before it is used.
    def events
      @packets.filter_map do |packet|
        packet.fetch(:interned_data, []).each { |data| learn(data) }
        event = packet[:track_event]&.first or next
        raise "an event of an unknown track" unless @tracks.key?(event[:track_uuid].first)
        raise "an event that needs no names" unless packet[:sequence_flags] == [2.0]

        { time: packet[:timestamp].first.to_i, track: event[:track_uuid].first, type: event[:type].first,
          name: event[:name_iid] && @names.fetch(event[:name_iid].first), arguments: arguments(event) }
          .tap { event.fetch(:category_iids, []).each { |category| @categories.fetch(category) } }
      end
    end

    def learn(data)
      { event_names: @names, event_categories: @categories, debug_annotation_names: @arguments }.each do |field, known|
        data.fetch(field, []).each { |entry| known[entry[:iid].first] = entry[:name].first }
      end
    end

    def arguments(event)
      event.fetch(:debug_annotations, []).flat_map { |annotation| annotation[:dict_entries] }
           .to_h { |entry| [@arguments.fetch(entry[:name_iid].first), entry[:double_value].first] }
    end

    def take(event, open, found)
      case event[:type]
      when BEGIN_SLICE then open.push(event)
      when END_SLICE
        first = open.pop or raise "an end without a beginning at #{event[:time]}"
        found << [first[:name], first[:time], event[:time], event[:arguments]]
      when INSTANT then @instants << [event[:name], event[:time]]
      end
    end

    def label(uuid)
      track = @tracks.fetch(uuid)
      return [label(track[:parent_uuid].first), track[:name].first].join("/") if track[:parent_uuid]

      (track[:thread]&.first || { thread_name: track[:process].first[:process_name] })[:thread_name].first
    end
  end
end
