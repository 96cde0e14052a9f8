# frozen_string_literal: true

module Stress
  module Scenarios
    # Signals to ourselves, handled by the main thread, each once.
    class Signals < Scenario
      NAMES = %w[USR1 USR2 HUP WINCH].freeze

      def round
        handled = Thread::Queue.new
        names = NAMES.sample(rand(1..3), random: @random)
        work = rand(0..20_000)
        before = names.to_h { |name| [name, trap(name) { compute(work) && handled << name }] }
        rounds = rand(1..5)
        got = Array.new(rounds) do
          send_all(names)
          Array.new(names.size) { handled.pop.tap { beat } }.sort
        end
        check_equal([names.sort] * rounds, got, "signals")
        account(:signals, names.size * rounds, got.sum(&:size))
        before.each { |name, handler| trap(name, handler || "DEFAULT") }
        check(handled.empty?, "a signal was handled twice")
      end

      private

      def send_all(names)
        names.each { |name| Process.kill(name, Process.pid) }
      end
    end
  end
end
