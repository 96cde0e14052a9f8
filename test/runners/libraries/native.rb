# frozen_string_literal: true

require_relative "checks"
require "nokogiri"
require "msgpack"
require "bcrypt"
require "google/protobuf"
require "google/protobuf/well_known_types"
require "timeout"

DOCUMENT = "<list>#{Array.new(300) { |number| "<item id='#{number}'><name>name #{number}</name></item>" }.join}</list>"
VALUE = { "a" => [*1..200], "b" => { "c" => "x" * 1000, "d" => [1.5, nil, true] } }.freeze

# Counts what it is told by the parser, in Ruby.
class Counter < Nokogiri::XML::SAX::Document
  attr_reader :count

  def start_element(_name, _attributes = []) = @count = @count.to_i + 1
end

checks do
  check("nokogiri: parsed and asked", { 300 => 80 }) { tally(8) { Array.new(10) { Nokogiri::XML(DOCUMENT).xpath("//item[name]").size } } }
  check("nokogiri: HTML5, CSS, written", { 300 => 40 }) do
    tally(8) { Array.new(5) { Nokogiri::HTML5(Nokogiri::HTML5(DOCUMENT).to_html).css("item").size } }
  end
  check("nokogiri: a SAX parser", { 601 => 80 }) do
    tally(8) { Array.new(10) { Counter.new.tap { |counter| Nokogiri::XML::SAX::Parser.new(counter).parse(DOCUMENT) }.count } }
  end
  check("nokogiri: timed out amid callbacks", { "Timeout::Error" => 40 }) do
    endless = proc { loop { Nokogiri::XML::SAX::Parser.new(Counter.new).parse(DOCUMENT) } }
    tally(4) { Array.new(10) { outcome { Timeout.timeout(0.02, &endless) } } }
  end
  check("msgpack: there and back", { true => 400 }) { tally(8) { Array.new(50) { MessagePack.unpack(MessagePack.pack(VALUE)) == VALUE } } }
  check("msgpack: streamed", { [VALUE] * 20 => 8 }) do
    in_threads(8) do
      reader, writer = IO.pipe
      sender = Thread.new { 20.times { writer.write(MessagePack.pack(VALUE)) && compute(200) } && writer.close }
      MessagePack::Unpacker.new(reader).each.to_a.tap { sender.join }
    end.tally
  end
  check("msgpack: timed out", { "Timeout::Error" => 40 }) do
    tally(4) { Array.new(10) { outcome { Timeout.timeout(0.02) { loop { MessagePack.unpack(MessagePack.pack(VALUE)) } } } } }
  end
  check("bcrypt: right and wrong", { "right" => 24 }) do
    in_threads(24) do |thread|
      password = BCrypt::Password.create("secret #{thread}", cost: 6)
      password == "secret #{thread}" && password != "no" ? "right" : "wrong"
    end.tally
  end
  check("protobuf: there and back", { VALUE => 80 }) do
    value = Google::Protobuf::Struct.from_hash(VALUE)
    tally(8) { Array.new(10) { Google::Protobuf::Struct.decode(Google::Protobuf::Struct.encode(value)).to_h } }
      .transform_keys { |found| found == { "a" => VALUE["a"].map(&:to_f), **VALUE.slice("b") } ? VALUE : found }
  end
  check("in forked children, their compaction too", [0] * 3) do
    forked(3) { in_threads(4) { Nokogiri::XML(DOCUMENT).xpath("//item").size.tap { GC.start && GC.compact } }.uniq == [300] }
  end
end
