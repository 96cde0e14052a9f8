# frozen_string_literal: true

require_relative "../advise"

module Headway
  module Advise
    # What a server's command line says, which its file can't overrule: where that file is, and counts.
    class CommandLine
      # @param command [String]
      # @param server [Predict::Server, nil] whose it is
      def initialize(command, server)
        @command = command
        @option = server&.option
        @counts = server ? server.words : {}
      end

      # @return [String, nil] the file it names
      def file = @option && @command[/\s(?:#{@option})[ =]?([^\s-]\S*)/, 1]

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
