# frozen_string_literal: true

require_relative "../advise"

module Headway
  module Advise
    # What a server's command line says, which its file can't overrule: where that file is, and counts.
    class CommandLine
      FILE = /\s(?:-C|--config)[ =]?([^\s-]\S*)/
      private_constant :FILE

      # @param command [String]
      # @param counts [Hash{Symbol => Array(Regexp, Proc)}] of :threads and :processes, where one is in it and how it is written
      def initialize(command, counts)
        @command = command
        @counts = counts
      end

      # @return [String, nil] the file it names
      def file = @command[FILE, 1]

      # @param what [Symbol] :threads or :processes
      # @return [Boolean] whether the count is given here
      def count?(what) = @counts.key?(what) && @counts[what].first.match?(@command)

      # @param counts [Hash{Symbol => Integer}]
      # @return [String] the command with those of them that are given in it
      def with(counts)
        counts.reduce(@command) do |command, (what, count)|
          pattern, word = @counts[what]
          pattern ? command.sub(pattern) { word.call(count) } : command
        end
      end
    end
    private_constant :CommandLine
  end
end
