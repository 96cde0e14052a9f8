# frozen_string_literal: true

require "sidekiq"
require_relative "work"
require_relative "integrations/options"
require_relative "integrations/recording"
require_relative "integrations/since"
require_relative "integrations/log" if Headway.supported?

module Headway
  # Headway in Sidekiq's server, every capsule of it, where Sidekiq is configured:
  #
  #   Headway::Sidekiq.install      # or with options: policy: :fair, quantum_ms: 50, log_interval: 60
  #
  # Each job is a {Work}, named by its class. The priority Sidekiq gives its threads is left alone.
  module Sidekiq
    OPTIONS = Integrations::Options.new(
      "Headway::Sidekiq.install", { recorder: Integrations::Options::RECORDING, log_interval: Integrations::Options::SECONDS,
                                    sample: Integrations::Options::SHARE }
    )
    private_constant :OPTIONS

    @installed = {}.compare_by_identity # a Config => its options and its log

    class << self
      # Starts Headway, and has Sidekiq tell of its jobs.
      #
      # @param config [::Sidekiq::Config, nil] nil: the server's, and nothing in a process that only queues jobs
      # @param policy [:fair, :quantum, :observe, nil] this and the next two: see {Headway.start}
      # @param quantum_ms [Numeric, nil]
      # @param preempt [:signal, :poll, nil]
      # @param recorder [Hash, nil] what to give {Recorder.start}
      # @param log_interval [Numeric, nil] seconds between lines in Sidekiq's log
      # @param sample [Numeric] share of jobs that are looked at, 0 to 1
      # @return [void]
      # @raise [SettingError] an option that isn't there, or a value that means nothing
      def install(config = nil, **options)
        options = OPTIONS.check(options, at: caller(1, 1))
        config ? install_in(config, options) : ::Sidekiq.configure_server { |server| install_in(server, options) }
        nil
      end

      private

      def install_in(config, options)
        # At once, so that processes forked later have the hooks; and again in those.
        started = Headway.start(**Integrations::Options.start(options))
        config.server_middleware { |chain| join(chain, options) }
        log = Integrations::Log.new(options[:log_interval]) { |line| config.logger.info(line) } if options[:log_interval] && started
        listen(config) unless @installed.key?(config)
        @installed[config] = [options, log]
      end

      def join(chain, options)
        chain.prepend(Middleware, options.fetch(:sample, 1))
      end

      # Once, however often it is installed: the last one's options count.
      def listen(config)
        config.on(:startup) do
          Integrations::Guard.guard("Headway::Sidekiq") { join_capsules(config, @installed[config].first) }
          Integrations::Guard.guard("Headway::Sidekiq") { start(config, *@installed[config]) }
        end
        at_end(config) { Integrations::Guard.guard("Headway::Sidekiq") { stop(*@installed[config]) } }
      end

      # In Sidekiq 7 a capsule's jobs go through a chain of its own, a copy of the one there was when somebody first asked for it: that may
      # have been before us.
      def join_capsules(config, options)
        return unless config.respond_to?(:capsules) # before Sidekiq 7

        config.capsules.each_value do |capsule|
          capsule.server_middleware { |chain| join(chain, options) unless chain.exists?(Middleware) }
        end
      end

      def start(config, options, log)
        return unless Headway.started? || Headway.start(**Integrations::Options.start(options))

        Integrations::Recording.start(options[:recorder]) if options[:recorder]
        log&.start
        config.logger.info("Headway #{VERSION}: policy #{Headway.policy}, quantum #{Headway.quantum_ms} ms, preempt #{Headway.preempt}")
      end

      # Once the last job is over. Before Sidekiq 8 it tells only that it begins to wait for them: a process of its own ends soon after
      # these, and a recording ends with it.
      def at_end(config, &block)
        config.on(:exit, &block)
      rescue ArgumentError
        config.on(:shutdown, &block) unless ::Sidekiq.const_defined?(:CLI)
      end

      # An embedded one ends before its process, which may record on.
      def stop(options, log)
        log&.stop
        Integrations::Recording.stop if options[:recorder]
      end
    end

    # Around each job.
    class Middleware
      include ::Sidekiq::ServerMiddleware if defined?(::Sidekiq::ServerMiddleware) # from Sidekiq 6.5 on

      HANDED_BACK = [::Sidekiq::Shutdown, *(::Sidekiq::Job::Interrupted if defined?(::Sidekiq::Job::Interrupted))].freeze
      private_constant :HANDED_BACK

      # @param sample [Numeric]
      def initialize(sample = 1)
        @sample = sample
      end

      # @param job [Hash] as it was queued
      # @param queue [String]
      # @return what the job returns
      def call(_instance, job, queue)
        work = start(job, queue)
        return Work.leave_out { yield } unless work

        begin
          yield
        rescue Exception => error # passed on
          raise
        ensure
          work.finish(error && !handed_back?(error) ? error : nil)
        end
      end

      private

      # Sidekiq ends, and another will do the job: that is no failure.
      def handed_back?(error)
        HANDED_BACK.any? { |kind| error.is_a?(kind) || error.cause.is_a?(kind) }
      end

      def start(job, queue)
        return if (@sample < 1 && rand >= @sample) || !Headway.started?

        # An Active Job comes wrapped in a class of Sidekiq's.
        work = Work.start(:job, (job["wrapped"] || job["class"]).to_s)
        work.queue = queue
        due = job["enqueued_at"]
        work.queued = Integrations::Since.seconds(due) if due.is_a?(Numeric)
        work
      end
    end
  end
end
