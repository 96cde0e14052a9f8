# frozen_string_literal: true

# How the segments of lanes are coded.
module Leb128
  module_function

  def leb128(number)
    bytes = []
    while number > 127
      bytes << ((number & 127) | 128)
      number >>= 7
    end
    (bytes << number).pack("C*")
  end

  # @return [Array<Integer>] what the bytes code, one number after the other
  def numbers(bytes)
    bytes.b.scan(/[\x80-\xff]*[\0-\x7f]/n).map { |coded| coded.bytes.each_with_index.sum { |byte, place| (byte & 127) << (7 * place) } }
  end
end
