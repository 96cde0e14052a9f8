# frozen_string_literal: true

module Headway
  class Web
    # A file as a response's body. It is open from the start, so it is sent whole even if it is removed meanwhile.
    class FileBody
      PART_BYTES = 64 << 10
      private_constant :PART_BYTES

      # @param path [String]
      # @raise [SystemCallError]
      def initialize(path)
        @file = File.open(path, File::RDONLY | File::NOFOLLOW | File::BINARY)
        @bytesize = @file.size
      end

      # @return [Integer]
      attr_reader :bytesize

      def each
        while (part = @file.read(PART_BYTES))
          yield part
        end
      end

      def close
        @file.close
      end
    end
  end
end
