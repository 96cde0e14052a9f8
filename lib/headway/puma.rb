# frozen_string_literal: true

require_relative "integrations/options"

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
    OPTIONS = Integrations::Options.new("headway in Puma's configuration",
                                        { recorder: RECORDING, log_interval: Integrations::Options::SECONDS })
    private_constant :TAKEN, :RECORDING, :OPTIONS

    @options = {}

    class << self
      # @param options [Hash]
      # @param at [Array<String>] where they were given
      # @raise [SettingError]
      def configure(options, at)
        @options = OPTIONS.check(options, at: at)
      end

      # @param launcher [::Puma::Launcher]
      # @return [void]
      def start(launcher)
        log = launcher.log_writer
        interval = @options[:log_interval]
        @log = Integrations::Log.new(interval) { |line| log.log(line) } if interval && Headway.supported?
        return unless Headway.start(**Integrations::Options.start(@options))

        Recorder.start(**@options[:recorder]) if @options[:recorder]
        log.log("* Headway #{VERSION}: policy #{Headway.policy}, quantum #{Headway.quantum_ms} ms, preempt #{Headway.preempt}")
      end

      # A server begins to serve in this process: the single one or a worker.
      # @return [void]
      def serve
        Integrations::Guard.guard("Headway in Puma") { @log&.start }
      end

      # @return [Hash{Symbol => Integer}] whole numbers, as workers can tell their master no others
      def stats
        return {} unless Headway.started?

        process = Stats.process
        { headway_running_ms: ms(process[:running]), headway_ready_ms: ms(process[:ready]),
          headway_suspended_ms: ms(process[:suspended]), headway_waits: process[:wait][:count],
          headway_wait_p50_us: us(process[:wait][:p50]), headway_wait_p99_us: us(process[:wait][:p99]),
          headway_preemptions: process[:preemptions] }
      end

      private

      def ms(seconds)
        (seconds * 1000).round
      end

      def us(seconds)
        (seconds * 1_000_000).round
      end
    end

    # In front of Puma::Server: joins what Headway knows to what Puma tells of itself.
    module Server
      def run(*arguments, **options)
        Puma.serve
        super
      end

      def stats
        ours = Integrations::Guard.guard("Headway in Puma") { Puma.stats }
        ours ? super.merge(ours) : super
      end
    end
  end
end
