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
end
