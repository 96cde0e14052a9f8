# frozen_string_literal: true

require "zlib"

# Writes trace files as docs/trace-format.md describes them, independently of the C core: what the two don't agree on is wrong in
# one of them or in the document.
class TraceEncoder
  KINDS = { started: 1, ready: 2, resumed: 3, suspended: 4, preempted: 5, exited: 6, gc_start: 7, gc_end: 8,
            mark_begin: 9, mark_end: 10, mark: 11, blame: 12, known: 13, mark_name: 15, off_cpu: 16, blocked: 17, queued: 18 }.freeze
  SPANS = { nil => 0, part: 1, request: 2, job: 3 }.freeze
  BLOCKS = { header: 1, strings: 2, threads: 3, frames: 4, stacks: 5, events: 6, dropped: 7, end: 8 }.freeze
  HEADER = { pid: 4242, parent_pid: 1, clock_ns: 1_000_000, wall_ns: 1_700_000_000_000_000_000, quantum_ns: 100_000_000, cpus: 2,
             ruby: "3.4.7", headway: "0.1.0", policy: "fair", preempt: "signal", command: "ruby server.rb" }.freeze

  attr_reader :bytes

  def initialize(version: 1, **header)
    @bytes = "\x89HWT\r\n\x1a\n".b + [version].pack("V")
    header = HEADER.merge(header)
    numbers = header.values_at(:pid, :parent_pid, :clock_ns, :wall_ns, :quantum_ns, :cpus)
    texts = header.values_at(:ruby, :headway, :policy, :preempt, :command)
    block(:header, numbers.map { |number| varint(number) }.join + texts.map { |text| text(text) }.join)
  end

  def block(type, payload)
    head = [BLOCKS.fetch(type, type), payload.bytesize].pack("VV")
    @bytes << head << [Zlib.crc32(head + payload)].pack("V") << payload
    self
  end

  # { id => text }, all in one block
  def strings(strings)
    block(:strings, strings.map { |id, string| varint(id) + text(string) }.join)
  end

  def thread(number, name, site = "")
    block(:threads, varint(number) + text(name) + text(site))
  end

  # { id => [method, file, line] }, as ids of strings
  def frames(frames)
    block(:frames, frames.map { |id, frame| [id, *frame].map { |number| varint(number) }.join }.join)
  end

  # { id => frames }, leaf first
  def stacks(stacks)
    block(:stacks, stacks.map { |id, frames| [id, frames.size, *frames].map { |number| varint(number) }.join }.join)
  end

  # [time in ns, thread, kind, value = 0, what kind of a span = nil]...
  def events(*events)
    time = events.first.first
    thread = 0
    payload = varint(events.size) + varint(time)
    events.each do |at, who, kind, value, span|
      number = KINDS.fetch(kind)
      head = number < 16 ? number : 0
      head |= 0x10 if who == thread
      head |= 0x20 if value
      head |= 0x40 if span
      payload << head
      payload << number if number >= 16
      payload << varint(zigzag(at - time))
      payload << varint(who) unless who == thread
      payload << varint(value) if value
      payload << SPANS.fetch(span) if span
      time = at
      thread = who
    end
    block(:events, payload)
  end

  def dropped(events, stacks)
    block(:dropped, varint(events) + varint(stacks))
  end

  def end
    block(:end, "".b)
  end

  private

  def varint(number)
    bytes = "".b
    while number >= 0x80
      bytes << (number & 0x7f | 0x80)
      number >>= 7
    end
    bytes << number
  end

  def zigzag(number)
    number.negative? ? -2 * number - 1 : 2 * number
  end

  def text(text)
    varint(text.bytesize) + text.b
  end
end
