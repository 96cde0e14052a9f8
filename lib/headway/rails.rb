# frozen_string_literal: true

require "rails"
require_relative "work"
require_relative "integrations/options"
require_relative "integrations/recording"
require_relative "rails/active_jobs"
require_relative "rails/cable_race"
require_relative "rails/markers"
require_relative "rails/queries"
require_relative "rails/railtie"

module Headway
  # Headway in Rails, as config.headway says (`rails generate headway:install` writes an initializer that names every option). By
  # default it starts with the application in every environment but test, puts {Headway::Rack} first, makes works of Active Job's
  # jobs, splits the time of SQL queries and marks what Rails does in traces.
  module Rails
    OPTIONS = begin
      switch = Integrations::Options::SWITCH
      Integrations::Options.new(
        "config.headway",
        { enabled: switch, recorder: Integrations::Options::RECORDING, requests: switch, jobs: switch, queries: switch, markers: switch,
          log: switch, sample: Integrations::Options::SHARE, server_timing: switch,
          wait_threshold: Integrations::Options::SECONDS, route: Integrations::Options::CALLABLE }
      )
    end
    REQUESTS = %i[sample server_timing wait_threshold route].freeze
    SUBSCRIBERS = { queries: Queries, markers: Markers }.freeze
    # Not in Log, whose constants every controller would have.
    LOG_PART = "Headway's part of the log"
    BEFORE = "headway.before"
    private_constant :OPTIONS, :REQUESTS, :SUBSCRIBERS, :LOG_PART, :BEFORE

    class << self
      # Before the application's own subscribers, most of which then find what these leave in an event's payload: not those that are of
      # another kind than ours and were there before, nor others of that kind, which ActiveSupport tells together.
      # @return [void]
      def subscribe
        @subscriptions ||= SUBSCRIBERS.transform_values do |subscriber|
          ActiveSupport::Notifications.subscribe(subscriber::EVENTS, subscriber.new)
        end
      end

      # @param app [::Rails::Application]
      # @return [void]
      # @raise [SettingError] an option that isn't there, or a value that means nothing
      def start(app)
        options = OPTIONS.check(given(app.config.headway), at: ["config"])
        enabled = options.fetch(:enabled) { !::Rails.env.test? }
        SUBSCRIBERS.each_key { |name| unsubscribe(name) unless enabled && options.fetch(name, true) }
        return unless enabled

        start_headway(options)
        app.middleware.insert_before(0, Headway::Rack, **options.slice(*REQUESTS)) if options.fetch(:requests, true)
        ActiveSupport.on_load(:active_job) { prepend ActiveJobs } if options.fetch(:jobs, true)
        ActiveSupport.on_load(:action_cable_connection) { CableRace.close }
        ActiveSupport.on_load(:action_controller) { include Log } if options.fetch(:log, true)
        @publisher ||= Work.subscribe(wanted: ->(work) { ActiveSupport::Notifications.notifier.listening?(event(work)) }) { |work| publish(work) }
      end

      # Not in Log either, whose methods every controller has.
      # @param request [ActionDispatch::Request] the one that the current thread is at
      # @return [Float, nil] seconds; nil where nothing was measured
      # @api private
      def wait_of(request)
        work = Work.current
        return (work.waiting if work.measured?) if work&.here?

        before = request.get_header(BEFORE)
        after = before && Headway.thread_account
        [after[1] - before[1], 0.0].max if after # started anew meanwhile, it is less than before
      end

      private

      def given(options)
        return options.to_h if options.is_a?(Hash)

        raise SettingError, "config.headway is #{options.inspect[0, 60]}: give single options, such as config.headway.enabled = false",
              ["config"], cause: nil
      end

      def start_headway(options)
        Headway.start(**Integrations::Options.start(options))
        Integrations::Recording.start(options[:recorder]) if options[:recorder] && Headway.started?
      end

      def unsubscribe(name)
        ActiveSupport::Notifications.unsubscribe(@subscriptions.delete(name)) if @subscriptions[name]
      end

      # request.headway and job.headway, for those who listen.
      def publish(work)
        ActiveSupport::Notifications.instrument(event(work), work: work)
      rescue ActiveSupport::Notifications::InstrumentationSubscriberError => error
        # A timeout that struck beside an error of theirs.
        raise error.exceptions.find { |each| !each.is_a?(StandardError) && !each.is_a?(ScriptError) } || error
      end

      def event(work)
        "#{work.kind}.headway"
      end
    end

    # Adds to the line that ends a request in the log, and to the payload of process_action.action_controller (:gvl_wait, seconds). An
    # action of ActionController::Live runs on a thread of its own while the request's sleeps: there it is what that one waited.
    module Log
      extend ActiveSupport::Concern

      class_methods do
        def log_process_action(payload)
          wait = payload[:gvl_wait]
          wait ? super << format("GVL wait: %.1fms", wait * 1000) : super
        end
      end

      private

      def process_action(*)
        work = Work.current
        Integrations::Guard.masked(LOG_PART) { request.set_header(BEFORE, Headway.thread_account) } unless work.nil? || work.here?
        super
      end

      def append_info_to_payload(payload)
        super
        Integrations::Guard.masked(LOG_PART) do
          wait = Rails.wait_of(request)
          payload[:gvl_wait] = wait if wait
        end
      end
    end
  end
end
