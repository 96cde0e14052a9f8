# frozen_string_literal: true

module Headway
  module Bench
    class Serving
      # A real Puma under an arm, and the load generator, each in processes of their own.
      class Puma
        BOOT_LIMIT_S = 60
        private_constant :BOOT_LIMIT_S

        # @param arm [Arm]
        # @param settings [Hash] see programs/puma.rb
        # @param options [Hash] env:, variables to be set besides the arm's; flags:, Ruby's, that let it load the gems it needs
        # @yieldparam puma [Puma] serving
        # @raise [Error]
        def self.run(arm, settings, **options)
          puma = new
          puma.start(arm, settings, **options)
          yield puma
        ensure
          puma.kill
        end

        # Apart from new: whatever happens in here, an interrupt for one, run can end what was started.
        # @return [void]
        # @raise [Error]
        def start(arm, settings, env: {}, flags: Gems.flags("puma"))
          command = [*arm.interpreter.command, *flags, Bench.program("puma"), JSON.generate(settings)]
          @child = Child.new(command, env: { **HEAP, **arm.environment, **env })
          @port = @child.first_line(BOOT_LIMIT_S).fetch("port")
          check(arm)
        end

        # Runs the load generator, always on plain Ruby.
        #
        # @param settings [Hash] see programs/load.rb
        # @return [Hash]
        def load(settings, limit_s:)
          command = [*Interpreter.current.command, Bench.program("load"), JSON.generate({ port: @port, **settings })]
          Child.run(command, env: Arm.environment, limit_s:)
        end

        # @return [void]
        def sweep = @child.signal(Swept::SIGNAL)

        # @return [Float] seconds of CPU its process has used so far; with several workers, one's
        def cpu_s = Float(ask("/cpu"))

        # @return [void]
        def kill = @child&.kill

        private

        def check(arm)
          policy = ask("/policy")
          return if policy == arm.policy.to_s

          raise Error, "the #{arm.name} arm ran with policy #{policy.inspect} instead of #{arm.policy.inspect}"
        end

        def ask(path)
          Socket.tcp("127.0.0.1", @port) do |socket|
            socket.write("GET #{path} HTTP/1.0\r\n\r\n")
            socket.read.split("\r\n\r\n", 2).last
          end
        rescue SystemCallError => error
          raise Error, "Puma no longer answers: #{error.message}"
        end
      end
    end
  end
end
