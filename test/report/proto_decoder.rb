# frozen_string_literal: true

require "open3"

# Decodes messages of perfetto.proto, with protoc where there is one and by itself: what it makes are hashes from a
# field's name to the list of its values.
class ProtoDecoder
  SCHEMA = File.join(__dir__, "perfetto.proto")
  MESSAGES = File.read(SCHEMA).gsub(%r{//.*}, "").scan(/message (\w+) \{(.*?)\}/m).to_h do |name, body|
    [name, body.scan(/(\w+) (\w+) = (\d+);/).to_h { |type, field, number| [number.to_i, [field.to_sym, type]] }]
  end

  def self.protoc?
    ENV["PATH"].split(":").any? { |directory| File.executable?(File.join(directory, "protoc")) }
  end

  # @return [Hash]
  def self.by_itself(bytes, message = "Trace")
    new(bytes.b, message).to_h
  end

  # @return [Hash]
  def self.by_protoc(bytes)
    text, errors, status = Open3.capture3("protoc", "--proto_path=#{__dir__}", "--decode=headway.test.Trace", "perfetto.proto",
                                          stdin_data: bytes, binmode: true)
    raise "protoc: #{errors}" unless status.success?

    parse(text.force_encoding("UTF-8").each_line(chomp: true))
  end

  def self.parse(lines)
    found = Hash.new { |hash, key| hash[key] = [] }
    loop do
      line = lines.next.strip
      break if line == "}"

      if line.end_with?(" {") then found[line.delete_suffix(" {").to_sym] << parse(lines)
      else
        name, value = line.split(": ", 2)
        raise "a field that the schema lacks: #{line}" if name.match?(/\A\d/)

        found[name.to_sym] << (value.start_with?('"') ? unquote(value) : Float(value))
      end
    end
    found.default_proc = nil
    found
  end

  def self.unquote(text)
    text[1..-2].b.gsub(/\\(\d{3}|.)/n) { $1.size == 3 ? $1.oct.chr : { "n" => "\n", "r" => "\r", "t" => "\t" }.fetch($1, $1) }
        .force_encoding("UTF-8")
  end

  def initialize(bytes, message)
    @bytes = bytes
    @message = message
    @at = 0
  end

  def to_h
    found = Hash.new { |hash, key| hash[key] = [] }
    until @at == @bytes.bytesize
      key = varint
      field, type = MESSAGES.fetch(@message).fetch(key >> 3)
      found[field] << value(key & 7, type)
    end
    found.default_proc = nil
    found
  end

  private

  def value(wire_type, type)
    case wire_type
    when 0 then varint.to_f
    when 1 then take(8).unpack1("E")
    when 2
      content = take(varint)
      MESSAGES.key?(type) ? ProtoDecoder.by_itself(content, type) : content.force_encoding("UTF-8")
    else raise "wire type #{wire_type} at #{@at}"
    end
  end

  def varint
    result = shift = 0
    loop do
      byte = take(1).ord
      result |= (byte & 127) << shift
      return result if byte < 128

      shift += 7
    end
  end

  def take(count)
    raise "cut short at #{@at}" if @at + count > @bytes.bytesize

    @bytes.byteslice(@at, count).tap { @at += count }
  end
end
