# frozen_string_literal: true

require "etc"
require_relative "../../processors"

module Headway
  module CLI
    module Doctor
      # What can be told without starting anything: the Ruby, the machine, the environment.
      module Surroundings
        # Besides HEADWAY itself, which is never wrong.
        SWITCHES = %w[HEADWAY_PULL HEADWAY_CONTROL HEADWAY_AUTOTUNE].freeze
        # Each variable with how its value is judged; the block raises SettingError for a bad one.
        VARIABLES = {
          "HEADWAY_POLICY" => ->(value) { Settings.policy(value, from: "HEADWAY_POLICY") },
          "HEADWAY_PREEMPT" => ->(value) { Settings.preempt(value, from: "HEADWAY_PREEMPT") },
          "HEADWAY_OFFLOAD" => ->(value) { Settings.offload(value, from: "HEADWAY_OFFLOAD") },
          "RUBY_THREAD_DEFAULT_QUANTUM_MS" =>
            ->(value) { Settings.quantum_ms(value, from: "RUBY_THREAD_DEFAULT_QUANTUM_MS") },
          "RUBY_THREAD_TIMESLICE" => ->(value) { Surroundings.timeslice(value) }
        }.merge(SWITCHES.to_h { |name| [name, ->(value) { Settings.switch({ name => value }, name) }] }).freeze
        private_constant :VARIABLES

        class << self
          # @return [Array<Check>] the first one says whether this Ruby can run Headway at all
          def checks
            [ruby, *environment, switch, timeslice_support, many_to_many, yjit, ractors, cores].compact
          end

          # Ruby itself ignores a bad value silently.
          #
          # @raise [SettingError]
          def timeslice(value)
            raise SettingError, "RUBY_THREAD_TIMESLICE is #{value.inspect}, but Ruby #{RUBY_VERSION} ignores it (3.4 doesn't)" unless Platform.timeslice?
            return value if value =~ /\A\d+\z/ && Settings::QUANTUM_RANGE_MS.cover?(value.to_i)

            raise SettingError, "RUBY_THREAD_TIMESLICE is #{value.inspect}, which Ruby ignores: give whole " \
                                "milliseconds from 1 to #{Settings::QUANTUM_RANGE_MS.end}"
          end

          private

          def ruby
            load_headway
            name = "#{RUBY_ENGINE == "ruby" ? "CRuby" : RUBY_ENGINE} #{RUBY_VERSION} on #{RUBY_PLATFORM}"
            reason = Headway.unsupported_reason
            Check.judge("Ruby", reason.nil?, reason ? "#{name}: Headway does nothing here, #{reason}" : name)
          end

          # On a Ruby that is too old the rest of the gem may not even parse.
          def load_headway
            require_relative "../../../headway" unless Platform.reason
          rescue LoadError => error
            Platform.extension_missing(error)
          end

          def environment
            VARIABLES.map do |name, rule|
              value = ENV[name]
              next if value.nil?

              begin
                rule.call(value)
                Check.judge(name, true, value)
              rescue SettingError => error
                Check.judge(name, false, error.message.delete_prefix("#{name} "))
              end
            end
          end

          def switch
            value = ENV["HEADWAY"]
            return if value.nil?
            return Check.judge("HEADWAY", false, Settings.odd_switch.delete_prefix("HEADWAY ")) if Settings.odd_switch

            Check.note("HEADWAY", value == "0" ? "0: Headway is switched off here" : value)
          end

          def timeslice_support
            Check.note("slices > 100 ms", if Platform.timeslice?
                                            "headway run sets RUBY_THREAD_TIMESLICE for them"
                                          else
                                            "no: Ruby #{RUBY_VERSION} ends every slice after 100 ms (3.4 can be told)"
                                          end)
          end

          def many_to_many
            value = ENV["RUBY_MN_THREADS"]
            Check.note("M:N threads", Platform.many_to_many? ? "on (RUBY_MN_THREADS=#{value}): Headway keeps its policy off" : "off")
          end

          def yjit
            enabled = defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?
            Check.note("YJIT", if enabled then "on"
                               else defined?(RubyVM::YJIT) ? "off" : "not in this Ruby"
                               end)
          end

          def ractors
            Check.note("Ractors", "only the main Ractor's threads are scheduled")
          end

          def cores
            quota = Quota.find
            Check.note("cores", "#{Etc.nprocessors}#{limit(quota) if quota && quota.processors < Etc.nprocessors}")
          end

          def limit(quota)
            periods, exhausted = quota.use.values_at(:periods, :exhausted)
            ", but a CPU quota of #{format("%.3g", quota.processors)}: beyond it all threads stand still" \
              "#{", as in #{exhausted} of #{periods} periods so far" if exhausted.positive?}"
          end
        end
      end
    end
  end
end
