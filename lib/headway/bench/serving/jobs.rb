# frozen_string_literal: true

require "tmpdir"

module Headway
  module Bench
    class Serving
      # The same with Sidekiq: jobs that mostly wait beside jobs that compute, in a real Redis.
      class Jobs < Serving
        PURPOSE = "jobs of Sidekiq, open loop: light ones beside heavy ones"

        private

        def with_server(arm, &) = Sidekiq.run(arm, settings, &)
      end

      # A Redis and a Sidekiq under an arm, and what gives it jobs, each in processes of their own.
      class Sidekiq
        BOOT_LIMIT_S = 60
        private_constant :BOOT_LIMIT_S

        # @return [String, nil] Redis's program
        def self.redis
          ENV.fetch("PATH", "").split(File::PATH_SEPARATOR).map { File.join(_1, "redis-server") }.find { File.executable?(_1) }
        end

        # @param arm [Arm]
        # @param settings [Hash] see programs/sidekiq.rb
        # @yieldparam sidekiq [Sidekiq] at work
        # @raise [Error]
        def self.run(arm, settings)
          Dir.mktmpdir("headway-redis") do |folder|
            sidekiq = new
            sidekiq.start(arm, settings, folder)
            yield sidekiq
          ensure
            sidekiq.kill
          end
        end

        # Apart from new: whatever happens in here, an interrupt for one, run can end what was started.
        # @return [void]
        # @raise [Error]
        def start(arm, settings, folder)
          start_redis(folder)
          command = [*arm.interpreter.command, *Gems.flags("sidekiq"), Bench.program("sidekiq"), JSON.generate(settings)]
          @child = Child.new(command, env: { **HEAP, **arm.environment, **@address })
          policy = @child.first_line(BOOT_LIMIT_S).fetch("policy")
          raise Error, "the #{arm.name} arm ran with policy #{policy.inspect}" unless policy == arm.policy
        end

        # @param settings [Hash] see programs/jobs.rb
        # @return [Hash]
        def load(settings, limit_s:)
          command = [*Interpreter.current.command, *Gems.flags("redis-client"), Bench.program("jobs"), JSON.generate(settings)]
          Child.run(command, env: Arm.environment.merge(@address), limit_s:)
        end

        # @return [void]
        def sweep = @child.signal(Swept::SIGNAL)

        # @return [void]
        def kill = [@child, @redis].compact.each(&:kill)

        private

        # On a socket that nobody else can have, keeping nothing on disk.
        def start_redis(folder)
          socket = File.join(folder, "redis.sock")
          @address = { "REDIS_URL" => "unix://#{socket}" }
          @redis = Child.new(["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder,
                              "--logfile", File::NULL])
          deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + BOOT_LIMIT_S
          until File.socket?(socket)
            raise Error, "redis-server did not start" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

            sleep 0.01
          end
        end
      end
    end
  end
end
