# frozen_string_literal: true

module Headway
  class Trace
    # What servers call their processes instead of the command that started them, and a trace takes for it:
    # puma 8.0.2 (tcp://…) [shop], puma: cluster worker 0: 42 [shop]. And what Puma with prune_bundler starts itself again as, which
    # is in no PATH and no bundle's programs.
    module Title
      SERVER = /\A(puma|sidekiq)\b.*\[.*\]/
      PRUNED = %r{\A\S*/puma-wild(?= |\z)}
      # Needs no quotes.
      PLAIN = %r{\A[[:word:]/.:%@+,-][[:word:]/.:%@+,=-]*\z}
      private_constant :SERVER, :PRUNED, :PLAIN

      # @param text [String] a process's command, as in {Trace#to_h}
      # @return [String, nil] what starts such a server; nil: this is neither
      def self.command(text)
        name = text[SERVER, 1] and return "bundle exec #{name}"

        in_a_shell(text.sub(PRUNED, "bundle exec puma")) if PRUNED.match?(text)
      end

      # What is advised gets pasted, and a trace's command, which anybody may have written, has no quotes: what was one word of it isn't
      # told, but none of it may end the command or begin another.
      #
      # @param command [String]
      # @return [String] the same for a shell, its words in quotes where they need them
      def self.in_a_shell(command)
        command.split(" ").map { |word| PLAIN.match?(word) ? word : "'#{word.gsub("'") { "'\\''" }}'" }.join(" ")
      end
    end
  end
end
