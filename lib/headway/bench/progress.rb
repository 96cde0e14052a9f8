# frozen_string_literal: true

module Headway
  module Bench
    # Says on stderr how far a benchmark is. What it measures is worth the same when nobody reads that: stderr may be closed, or full, or
    # its reader gone.
    module Progress
      # @param text [String]
      # @return [void]
      def self.puts(text)
        $stderr.puts(text)
      rescue IOError, SystemCallError
        nil
      end
    end
  end
end
