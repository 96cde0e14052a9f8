# frozen_string_literal: true

module Headway
  module Bench
    # Arithmetic by one thread and by several, which gains nothing.
    class Cpu < WorkSharing
      PURPOSE = "arithmetic by one thread and by several (in the environment: THREADS=8, N=5000000)"
      DEFAULTS = { "threads" => 8, "iterations" => 5_000_000 }.freeze
      MODES = %w[single threads].freeze

      def self.settings_from(env)
        { "threads" => count(env, "THREADS", 1_000), "iterations" => count(env, "N", 1_000_000_000) }.compact
      end

      def measure(arm, _cell)
        run_program("cpu", arm, config, limit_s: 60 + (config["iterations"] / 200_000))
      end

      private

      def threads = config["threads"]
    end
  end
end
