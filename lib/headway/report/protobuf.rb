# frozen_string_literal: true

module Headway
  module Report
    # As much of the protocol buffers' encoding as traces need: a message is a string of fields, each a key (number and
    # wire type) and a value. Fields that are messages themselves are built first and then given as bytes.
    module Protobuf
      VARINT = 0
      FIXED64 = 1
      BYTES = 2
      # Most numbers are small: names, tracks, lengths.
      SMALL = Array.new(16_384) do |value|
        (value < 128 ? [value] : [(value & 127) | 128, value >> 7]).pack("C*").freeze
      end.freeze
      # The same as two bytes that more follow.
      LOW = Array.new(16_384) { |value| [(value & 127) | 128, (value >> 7) | 128].pack("C*").freeze }.freeze
      private_constant :VARINT, :FIXED64, :BYTES, :SMALL, :LOW

      module_function

      # @param value [Integer] not negative
      # @return [String] seven bits to a byte, the lowest first
      def varint(value)
        return SMALL[value] if value < 16_384

        bytes = String.new(encoding: Encoding::BINARY)
        while value > 16_383
          bytes << LOW[value & 16_383]
          value >>= 14
        end
        bytes << SMALL[value]
      end

      # @return [String] a field with a number, a boolean or an enum's number
      def number(field, value)
        varint((field << 3) | VARINT) + varint(value)
      end

      # @return [String] a field with a floating-point number
      def double(field, value)
        varint((field << 3) | FIXED64) + [value].pack("E")
      end

      # @return [String] a field with text, bytes or a message
      def bytes(field, value)
        varint((field << 3) | BYTES) + varint(value.bytesize) + value.b
      end

      # @return [String] a field with text, which has to be UTF-8
      def text(field, value)
        bytes(field, value.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?"))
      end
    end
  end
end
