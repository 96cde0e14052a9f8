# frozen_string_literal: true

module Headway
  module Bench
    class Serving
      # Servers side by side that get their load by turns of seconds: a machine that is twice as fast in one minute as in the next is
      # so for all of them alike. Who has no turn is idle.
      class Turns
        # @param arms [Array<Arm>]
        # @param run [#call] runs the server of an arm around a block, which it gives that
        # @yieldparam servers [Hash{Arm => #load}] of those that could be started
        def self.side_by_side(arms, run, servers = {}, &)
          first, *others = arms
          return yield(servers) unless first

          serves = false
          run.call(first) do |server|
            serves = true
            side_by_side(others, run, { **servers, first => server }, &)
          end
        rescue Error => error
          raise if serves || first.nil?

          leave_out(first, error)
          side_by_side(others, run, servers, &)
        end

        # @api private
        # @return [void]
        def self.leave_out(arm, error) = warn("#{arm.name} is left out: #{error.message}")

        # @param answers [Array<Hash>] of some turns
        # @return [Float] requests a second
        def self.rate(answers) = answers.sum { _1.fetch("counted") } / answers.sum { _1.fetch("seconds") }

        # @param whole [Numeric] of anything: seconds, requests
        # @param most [Numeric] of it in one turn
        # @return [Array(Integer, Float)] how many turns, and how much of it in each, all alike
        def self.divide(whole, most)
          count = (whole / most.to_f).ceil
          [count, whole / count.to_f]
        end

        # @param servers [Hash{Arm => #load}]
        # @param count [Integer] turns of each
        # @param seed [Integer] of the first turn; one turn's requests are the same for all
        def initialize(servers, count, seed:)
          @servers = servers
          @count = count
          @seed = seed
        end

        # @yieldparam arm [Arm]
        # @yieldreturn [Hash] what its generator of load is told
        # @return [Hash{Arm => Array<Hash>}] what that answered, turn by turn; nothing of who failed: a server that falls behind must
        #   not cost us the hours before and after it
        def call(limit_s:, &settings)
          @answers = @servers.transform_values { [] }
          @count.times do |turn|
            (@servers.keys.rotate(turn) & @answers.keys).each { |arm| take(arm, { **settings.call(arm), seed: @seed + turn }, limit_s) }
          end
          @answers
        end

        private

        def take(arm, settings, limit_s)
          @answers[arm] << @servers.fetch(arm).load(settings, limit_s:)
        rescue Error => error
          Turns.leave_out(arm, error)
          @answers.delete(arm)
        end
      end
    end
  end
end
