# frozen_string_literal: true

require_relative "scenario"
require_relative "ending"

module Stress
  # Stock Ruby 3.3 and 3.4 move a string that another thread is just writing when GC.compact runs: the write then fails with
  # EFAULT. So compaction is only mixed with scenarios that write to no IO.
  WRITERS = %w[at_exits files forks pipes requires signals sockets spawns].freeze

  # A child forked by a thread of Ruby 3.3 now and then aborts when it exits ("lazy sweeping underway when freeing object space").
  UNSOUND = RUBY_VERSION < "3.4" ? %w[forks].freeze : [].freeze

  # What one process does: decided by its seed and the options alone, so that the seed brings it back.
  Plan = Struct.new(:seed, :seconds, :stall, :policies, :preempts, :settings, :late_start, :change_settings, :scenarios, :ending,
                    :compacts, :auto_compact, :timeslice_ms) do
    def self.draw(seed, options)
      random = Random.new(seed)
      plan = new(seed: seed, seconds: options.process_seconds, stall: options.stall,
                 policies: options.policies, preempts: options.preempts)
      plan.draw_settings(random)
      plan.scenarios = options.scenarios.any? ? options.scenarios : draw_scenarios(random, plan)
      plan.ending = Ending.names[seed % Ending.names.size]
      plan.compacts = (plan.scenarios & WRITERS).empty?
      plan.auto_compact = random.rand(5).zero? && plan.compacts
      plan.timeslice_ms = [nil, nil, 1, 10][random.rand(4)]
      plan
    end

    # Seeds in a row go through every combination of settings and ending; what is drawn here varies inside it.
    def draw_settings(random)
      all = policies.product(preempts)
      round = all.size.lcm(Ending.names.size) unless all.empty? # after which both would come in the same pairs again
      policy, preempt = all[(seed + (seed / round)) % all.size] if round
      self.settings = policy && { policy: policy, preempt: preempt, quantum_ms: [1, 3, 10, 30, 100].sample(random: random) }
      self.late_start = random.rand(3).zero?
      self.change_settings = random.rand(2).zero?
    end

    def self.draw_scenarios(random, plan)
      headway = %w[face reconfigure]
      names = (Scenario.names - headway - ["cpu"] - UNSOUND).sample(random.rand(4..8), random: random)
      names.unshift("cpu") unless random.rand(4).zero?
      names << "face" if plan.settings && random.rand(3).zero?
      names << "reconfigure" if plan.settings && plan.change_settings
      names
    end

    # The plan decides, not the environment bin/stress runs in.
    SETTINGS = %w[HEADWAY HEADWAY_POLICY HEADWAY_PREEMPT RUBY_THREAD_DEFAULT_QUANTUM_MS RUBYOPT].freeze

    def environment
      { **SETTINGS.to_h { |name| [name, nil] }, "RUBY_THREAD_TIMESLICE" => timeslice_ms&.to_s }
    end

    def to_s
      "seed #{seed} #{settings ? settings.values_at(:policy, :preempt, :quantum_ms).join("/") : "none"} " \
        "#{scenarios.join(",")} then #{ending}"
    end
  end
end
