# frozen_string_literal: true

require "zlib"

module Soak
  # What a request with a number has to be answered with: nobody else's answer looks like it, and none cut short or mixed up with
  # another passes for it.
  module Answer
    module_function

    # @return [String] of so many bytes and a few more
    def of(number, size)
      head = "#{number}:#{size}:"
      text = head * (size / head.bytesize + 1)
      "#{text}#{Zlib.crc32(text).to_s(16)}"
    end

    # @return [Array<String>] it in so many parts
    def parts(number, size, count)
      text = of(number, size)
      length = [(text.bytesize / count.to_f).ceil, 1].max
      text.scan(/.{1,#{length}}/m)
    end
  end
end
