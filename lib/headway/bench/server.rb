# frozen_string_literal: true

module Headway
  module Bench
    # The HTTP server that requests are sent to, in a process of its own and always on plain Ruby.
    module Server
      # @param delay_ms [Numeric] after which each request is answered
      # @param port [Integer] 0 for any that is free
      # @yieldparam port [Integer]
      def self.run(delay_ms:, port: 0)
        command = [*Interpreter.current.command, Bench.program("server"), JSON.generate(delay_ms:, port:)]
        child = Child.new(command, env: Arm.environment)
        answer = child.first_line(20)
        raise UsageError, "port #{port} cannot be used: #{answer["error"]}" if answer["error"]

        yield answer.fetch("port")
      ensure
        child&.kill
      end
    end
  end
end
