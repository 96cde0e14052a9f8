# frozen_string_literal: true

module Headway
  class Trace
    # What servers call their processes instead of the command that started them, and a trace takes for it:
    # puma 8.0.2 (tcp://…) [shop], puma: cluster worker 0: 42 [shop].
    module Title
      SERVER = /\A(puma|sidekiq)\b.*\[.*\]/
      private_constant :SERVER

      # @param text [String] a process's command, as in {Trace#to_h}
      # @return [String, nil] what starts such a server; nil: this is no title
      def self.command(text) = text[SERVER, 1]&.then { |name| "bundle exec #{name}" }
    end
  end
end
