# frozen_string_literal: true

require_relative "integrations/guard"
require_relative "integrations/options"
require_relative "integrations/recording"
require_relative "integrations/worker"
require_relative "puma/accept_delay"
require_relative "puma/threads"

module Headway
  # What `plugin :headway` does in config/puma.rb.
  #
  # Headway starts in the process that reads the configuration, before it forks: workers, later ones too, go on with their parent's
  # settings and with statistics of their own.
  module Puma
    # Signals Puma itself listens to.
    TAKEN = %w[HUP INT TERM USR1 USR2 TTIN TTOU CHLD URG INFO].freeze
    RECORDING = lambda do |name, value|
      Integrations::Options::RECORDING.call(name, value)
      signal = value[:on_signal].to_s.delete_prefix("SIG")
      TAKEN.include?(signal) and raise SettingError, "on_signal is #{signal}, which Puma listens to itself: give another, such as PROF"
    end
    # true, or a Hash of what Autotune.start takes and threads:, the range Puma's threads may move in.
    AUTOTUNE = lambda do |name, value|
      next if [true, false].include?(value)

      value.is_a?(Hash) or raise SettingError, "#{name} is #{value.inspect[0, 60]}: give true, or a Hash such as { threads: 2..8 }"
      value = value.transform_keys { |key| key.is_a?(String) ? key.to_sym : key }
      threads = value[:threads]
      sound = threads.nil? || (threads.is_a?(Range) && [threads.begin, threads.end].all?(Integer) && threads.begin.between?(1, threads.end))
      sound or raise SettingError, "#{name} has threads: #{threads.inspect[0, 60]}: give a range such as 2..8"
      Autotune.check(value.except(:threads))
    end
    OPTIONS = Integrations::Options.new("headway in Puma's configuration",
                                        { recorder: RECORDING, log_interval: Integrations::Options::SECONDS, autotune: AUTOTUNE })
    private_constant :TAKEN, :RECORDING, :AUTOTUNE, :OPTIONS

    @options = {}

    class << self
      # @param options [Hash]
      # @param at [Array<String>] where they were given
      # @raise [SettingError]
      def configure(options, at)
        @options = { **@options, **OPTIONS.check(options, at: at) }
      end

      # @param launcher [::Puma::Launcher]
      # @return [void]
      def start(launcher)
        return if launcher.equal?(@launcher) # several files of a configuration may name the plugin

        @launcher = launcher
        log = @log_writer = launcher.respond_to?(:log_writer) ? launcher.log_writer : launcher.events # before Puma 6
        Integrations::Guard.guard("the number of Puma's worker") { number_workers(launcher) }
        return unless Headway.start(**Integrations::Options.start(@options))

        interval = @options[:log_interval]
        @log = Integrations::Log.new(interval) { |line| log.log(line) } if interval
        Integrations::Recording.start(@options[:recorder]) if @options[:recorder]
        log.log("* Headway #{VERSION}: policy #{Headway.policy}, quantum #{Headway.quantum_ms} ms, preempt #{Headway.preempt}")
      end

      # A server begins to run in this process. Only the launcher's own, the single one or a worker's, serves the application on what the
      # launcher has bound; pumactl's, a metrics exporter's and one that a test runs have sockets of their own.
      # @param server [::Puma::Server]
      # @return [void]
      def serve(server)
        return unless own?(server)

        Integrations::Guard.guard("Headway in Puma") { @log&.start }
        Integrations::Guard.guard("autotune in Puma") { tune(server, @options[:autotune]) if @options[:autotune] }
      end

      # A server has ended: its process, where a program started Puma, may go on.
      # @param server [::Puma::Server]
      # @return [void]
      def leave(server)
        return unless own?(server)

        Integrations::Guard.guard("Headway in Puma") { @log&.stop }
        Integrations::Guard.guard("autotune in Puma") { Autotune.stop if @options[:autotune] }
      end

      # @return [Hash{Symbol => Integer}] whole numbers, as workers can tell their master no others
      def stats
        return {} unless Headway.started?

        process = Stats.process
        { headway_running_ms: ms(process[:running]), headway_ready_ms: ms(process[:ready]),
          headway_suspended_ms: ms(process[:suspended]), headway_waits: process[:wait][:count],
          headway_wait_p50_us: us(process[:wait][:p50]), headway_wait_p99_us: us(process[:wait][:p99]),
          headway_preemptions: process[:switches][:preempted] }
      end

      private

      def own?(server)
        @launcher && server.binder.equal?(@launcher.binder)
      end

      # Where there are workers; elsewhere Puma would warn of it. The application's own hook comes later, and has the last word.
      def number_workers(launcher)
        return unless launcher.options[:workers].to_i.positive?

        Integrations.worker = "master"
        launcher.config.configure do |dsl|
          # Puma 6 looks for workers where this one writes alone, and not where config/puma.rb has them: it would say that there are none.
          dsl.silence_fork_callback_warning if dsl.respond_to?(:silence_fork_callback_warning)
          hook = dsl.respond_to?(:before_worker_boot) ? :before_worker_boot : :on_worker_boot
          dsl.public_send(hook) { |index| Integrations.worker = index }
        end
      end

      def tune(server, options)
        Autotune.stop # a refork serves with the same server again
        options = options == true ? {} : options.transform_keys(&:to_sym)
        log = @log_writer
        knobs = { **threads_knob(server, options[:threads]), **options[:knobs].to_h }
        nothing = knobs.empty? && options[:quantum_ms] == false
        say_threads_stay(log, nothing) if !knobs.key?(:threads) && (options[:threads] || nothing)
        Autotune.start(log: ->(line) { log.log(line) }, **options.except(:threads), knobs: knobs) unless nothing
      end

      def threads_knob(server, range)
        Threads.settable?(server) ? { threads: Threads.new(server, range) } : {}
      end

      def say_threads_stay(log, nothing)
        what = nothing ? "has nothing to tune: quantum_ms is false, and" : "leaves threads alone:"
        log.log("* Headway: autotune #{what} Puma #{::Puma::Const::VERSION} can't change #{nothing ? "its threads" : "them"}, from 8.0 on it can")
      end

      def ms(seconds)
        (seconds * 1000).round
      end

      def us(seconds)
        (seconds * 1_000_000).round
      end
    end

    # In front of Puma::Server: joins what Headway knows to what Puma tells of itself.
    module Server
      def run(*, **)
        Puma.serve(self)
        super
      end

      # All that the server's thread does.
      def handle_servers
        super
      ensure
        Puma.leave(self)
      end

      # @return [Range] how many threads it was configured with, whatever a knob has made of it since
      def headway_threads
        @headway_threads ||= min_threads..max_threads
      end

      # Has threads beyond the most there may be end as soon as they are free. Those for requests bound to I/O are none of these, and Puma
      # 8.0.2 goes on to count some of them as spawned when they have ended.
      # @return [void]
      def headway_trim
        pool = @thread_pool or return
        threads = pool.with_mutex { pool.instance_variable_get(:@processors).count { |each| each.alive? && !each.marked_as_io_thread? } }
        (threads - pool.trim_requested - max_threads).times { pool.trim(true) }
      end

      def stats
        ours = Integrations::Guard.guard("Headway in Puma") { Puma.stats }
        ours ? super.merge(ours) : super
      end
    end
  end
end
