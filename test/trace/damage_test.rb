# frozen_string_literal: true

require_relative "trace_case"

# Files that are no whole traces.
class TraceDamageTest < TraceCase
  def error_of(content)
    path = file(content)
    error = assert_raises(Headway::Trace::Error) { Headway::Trace.open(path) }
    assert_operator error.message, :start_with?, "#{path}: "
    refute_includes error.message, "\n"
    error.message.delete_prefix("#{path}: ")
  end

  def test_what_cannot_be_read_at_all
    assert_equal "is empty", error_of("")
    assert_equal "is no Headway trace", error_of("{\"traceEvents\":[]}")
    assert_equal "cut short before its header (at byte 5)", error_of(TraceEncoder.new.bytes[0, 5])
    assert_equal "is of version 2 of the format, and this Headway reads version 1: a newer Headway is needed (at byte 8)",
                 error_of(TraceEncoder.new(version: 2))
    assert_match(/\Ahas its numbers in the other byte order: .* little endian/, error_of(TraceEncoder.new(version: 1 << 24)))
    assert_match(/\Acut short: a block of \d+ bytes begins here, but 40 are left \(at byte 12\)\z/,
                 error_of(TraceEncoder.new.bytes[0, 52]))
    assert_equal "the header is malformed (at byte 12)", error_of("\x89HWT\r\n\x1a\n\1\0\0\0".b + empty_block(1))
    assert_equal "the first block is no header (at byte 12)", error_of("\x89HWT\r\n\x1a\n\1\0\0\0".b + empty_block(8))
  end

  # The recorder goes on where it was.
  def test_what_was_emptied_in_place_is_told_of
    whole = known_trace.bytes
    path = file(whole)
    File.open(path, "r+b") do |written|
      written.seek(whole.bytesize)
      written.truncate(0)
      written << TraceEncoder.new.end.bytes
    end
    error = assert_raises(Headway::Trace::Error) { Headway::Trace.open(path) }
    assert_match(/: begins with zeros: it was emptied while it was recorded, as by logrotate's copytruncate, and only the copy/, error.message)
  end

  def empty_block(type)
    head = [type, 0].pack("VV")
    head + [Zlib.crc32(head)].pack("V")
  end

  def test_what_is_no_file
    missing = File.join(@directory, "missing")

    assert_equal "#{missing}: can't be opened: No such file or directory",
                 assert_raises(Headway::Trace::Error) { Headway::Trace.open(missing) }.message
    assert_equal "#{@directory}: is no regular file",
                 assert_raises(Headway::Trace::Error) { Headway::Trace.open(@directory) }.message
    assert_raises(ArgumentError) { Headway::Trace.open }
    assert_raises(TypeError) { Headway::Trace.open(nil) }
  end

  def test_a_pipe_nobody_writes_to_holds_nothing_up
    pipe = File.join(@directory, "pipe")
    File.mkfifo(pipe)

    assert_match(/is no regular file\z/, assert_raises(Headway::Trace::Error) { Headway::Trace.open(pipe) }.message)
  end

  # An id may be as high as a million, and each file has tables of its own.
  def test_a_high_id_takes_no_memory_for_those_below_it
    skip "there is no VmHWM" unless File.exist?("/proc/self/status") && File.read("/proc/self/status").include?("VmHWM")
    trace = TraceEncoder.new.strings(1_048_575 => "x").frames(1_048_575 => [1, 1, 1]).stacks(1_048_575 => [1_048_575])
                        .events([ms(0), 1, :known, 2], [ms(50), 1, :blame, 1_048_575], [ms(60), 1, :suspended]).end
    files = Array.new(10) { |number| file(trace, "trace#{number}.headway") }

    assert_operator most_kb(*files) - most_kb(*files.first(1)), :<, 50_000, "of 9 more files"
  end

  def most_kb(*files)
    run = Harness::RubyProcess.eval(<<~'RUBY', *files)
      require "headway/trace"
      Headway::Trace.open(*ARGV).to_h
      puts File.read("/proc/self/status")[/^VmHWM:\s+(\d+)/, 1]
    RUBY
    assert run.success?, run
    Integer(run.out)
  end

  def test_one_unreadable_file_of_several_is_named
    good = file(known_trace, "good.headway")
    bad = file("nonsense", "bad.headway")

    assert_equal "#{bad}: is no Headway trace", assert_raises(Headway::Trace::Error) { Headway::Trace.open(good, bad) }.message
  end

  def damage_of(bytes)
    trace_of(bytes).to_h[:processes].first[:damage]
  end

  def test_damage_is_named_with_its_offset_and_what_is_before_it_read
    bytes = known_trace.bytes
    bytes.setbyte(bytes.bytesize - 13, bytes.getbyte(bytes.bytesize - 13) ^ 1) # in the block before the last one
    known = trace_of(bytes).to_h

    assert_equal({ offset: bytes.bytesize - 12 - 14, what: "a block's checksum is wrong" }, known[:processes].first[:damage])
    assert_equal 15, known[:processes].first[:events]
  end

  def test_a_file_still_being_written
    encoder = TraceEncoder.new.events([ms(0), 1, :resumed])

    assert_equal({ offset: encoder.bytes.bytesize, what: "cut short, or still being written: no end block" },
                 damage_of(encoder.bytes))
    assert_match(/\Acut short: a block of \d+ bytes begins here, but \d+ are left\z/, damage_of(encoder.bytes[0..-2])[:what])
    assert_equal "cut short: 3 bytes that are no block", damage_of(encoder.bytes + "\6\0\0")[:what]
  end

  def test_more_after_the_end
    assert_equal "#{known_trace.bytes.bytesize} bytes after the end", damage_of(known_trace.bytes * 2)[:what]
    assert_equal "a second header", damage_of(known_trace.bytes[0..-13] + known_trace.bytes[12..])[:what]
  end

  def test_sound_blocks_with_nonsense_in_them
    assert_equal "a malformed string", damage_of(TraceEncoder.new.block(:strings, "\1\xff".b).bytes)[:what]
    assert_equal "a malformed block of events", damage_of(TraceEncoder.new.block(:events, "\x05\x00".b).bytes)[:what]
    assert_match(/\Aa block of 4294967295 bytes/, damage_of(TraceEncoder.new.bytes + ("\xff".b * 8) + "1234")[:what])
  end

  def test_blocks_of_a_later_headway_are_skipped
    known = trace_of(TraceEncoder.new.block(99, "news").events([ms(0), 1, :resumed]).end).to_h

    assert_nil known[:processes].first[:damage]
    assert_equal 1, known[:processes].first[:events]
  end

  def test_kinds_of_a_later_headway_are_skipped
    encoder = TraceEncoder.new.block(:events, "\x02\xc0\x84\x3d".b + "\x00\xc8\x00\x01".b + "\x12\x02".b).end
    trace = trace_of(encoder)

    assert_nil trace.to_h[:processes].first[:damage]
    assert_equal [[:ready, 1]], trace.events.map { |event| event.values_at(3, 2) }
  end

  # Through the Ruby face too: every length, every flipped bit of every eleventh byte.
  def test_nothing_crashes
    bytes = known_trace.bytes
    path = File.join(@directory, "any.headway")
    (0...bytes.bytesize).each { |length| read_anything(path, bytes[0, length]) }
    (0...bytes.bytesize).step(11) do |place|
      8.times do |bit|
        flipped = bytes.dup
        flipped.setbyte(place, bytes.getbyte(place) ^ 1 << bit)
        read_anything(path, flipped)
      end
    end
  end

  def read_anything(path, bytes)
    File.binwrite(path, bytes)
    trace = Headway::Trace.open(path)
    refute_nil trace.to_h[:processes].first[:damage]
    trace.lanes
    trace.events.each { |event| assert_kind_of Symbol, event[3] }
  rescue Headway::Trace::Error => error
    assert_operator error.message, :start_with?, path
  end
end
