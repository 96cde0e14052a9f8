# frozen_string_literal: true

module Headway
  module CLI
    # The environment that makes a command, and every Ruby it starts, run with Headway.
    module ChildEnvironment
      LIB = File.expand_path("../..", __dir__).freeze
      # What a Bundler around us keeps of the variables as they were before it, and programs get back: Puma as it starts anew or prunes
      # its bundle, whatever Bundler.with_original_env runs.
      KEPT = "BUNDLER_ORIG_"
      KEPT_NOTHING = "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL"
      private_constant :LIB, :KEPT, :KEPT_NOTHING

      class << self
        # @param options [Hash] :policy, :quantum_ms, :preempt, :record and :summary, as far as they were given
        # @return [Hash{String => String}] the variables to set
        # @raise [SettingError] for a bad value in the environment
        # @raise [UsageError]
        def build(options, env: ENV, pid: Process.pid, lib: LIB)
          return {} if Settings.disabled?(env)

          variables = settings(options)
          quantum_ms = Settings.resolve(env: env.to_h.merge(variables)).quantum_ms
          variables.merge!(timeslice(quantum_ms, env), autostart(env, lib))
          variables["HEADWAY_SUMMARY"] = "1" if options[:summary]
          variables["HEADWAY_RECORD"] = options[:record] if options[:record]
          # exec keeps the process: by this number the command's own process knows itself among its children.
          variables["HEADWAY_RUN_PID"] = pid.to_s
          variables
        end

        private

        def settings(options)
          { "HEADWAY_POLICY" => options[:policy], "HEADWAY_PREEMPT" => options[:preempt],
            "RUBY_THREAD_DEFAULT_QUANTUM_MS" => options[:quantum_ms] }.compact.transform_values(&:to_s)
        end

        # A quantum above the VM's own slice needs a longer slice of the VM; a still longer one stays.
        def timeslice(quantum_ms, env)
          return {} if quantum_ms <= Settings::VM_SLICE_MS

          { "RUBY_THREAD_TIMESLICE" => [quantum_ms.ceil, env["RUBY_THREAD_TIMESLICE"].to_i].max.to_s }
        end

        def autostart(env, lib)
          loading(lib).each_with_object({}) do |(name, (item, separator)), variables|
            variables[name] = prepend(item, env[name], separator)
            kept = env["#{KEPT}#{name}"]
            variables["#{KEPT}#{name}"] = prepend(item, (kept unless kept == KEPT_NOTHING), separator) unless kept.to_s.empty?
          end
        end

        # An absolute path needs no gem activation, so it works under a Gemfile that doesn't name Headway. Ours comes
        # first: its at_exit block then runs last. RUBYOPT knows no quoting, so a path with a space in it goes through
        # RUBYLIB, which is split at colons only.
        def loading(lib)
          return { "RUBYOPT" => ["-r#{lib}/headway/autostart.rb", " "] } unless lib =~ /\s/
          if lib.include?(File::PATH_SEPARATOR)
            raise UsageError, "#{lib} has both a space and a colon, which Ruby's environment variables cannot carry: " \
                              "install Headway in another directory"
          end

          { "RUBYOPT" => ["-rheadway/autostart", " "], "RUBYLIB" => [lib, File::PATH_SEPARATOR] }
        end

        def prepend(item, list, separator)
          items = list.to_s.split(separator)
          items.include?(item) ? list : [item, *items].join(separator)
        end
      end
    end
  end
end
