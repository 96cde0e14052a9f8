# frozen_string_literal: true

require_relative "work"
require_relative "integrations/options"

module Headway
  class Rack # named before its part is, so that it doesn't ask for this file again
  end
end

require_relative "rack/queue_time"
require_relative "rack/route"

module Headway
  # Rack middleware: tells of each request how long its thread ran, waited for the GVL and was suspended, up to the last byte of the
  # body. Put it first.
  #
  #   use Headway::Rack                                        # env["headway.request"] is a Headway::Work
  #   use Headway::Rack, server_timing: true, sample: 0.1      # a Server-Timing header on one request in ten
  #   use Headway::Rack, wait_threshold: 0.5                   # has the flight recorder dump when a request waited for longer
  #
  # Headway must be started; until then nothing is measured. A fault in here never breaks a request.
  class Rack
    REQUEST = "headway.request"
    LEFT_OUT = "headway.left_out" # of the sample: then another one that stands further in leaves it out, too
    FINISHED = "rack.response_finished"
    TIMING = "server-timing"
    RAISED = 500 # what the server will make of it: a request that is over is named as one that was answered
    OPTIONS = Integrations::Options.new(
      "Headway::Rack", { route: Integrations::Options::CALLABLE, sample: Integrations::Options::SHARE,
                         server_timing: Integrations::Options::SWITCH, wait_threshold: Integrations::Options::SECONDS },
      start: false
    )
    private_constant :LEFT_OUT, :FINISHED, :TIMING, :RAISED, :OPTIONS

    # @param app [#call]
    # @param route [#call, nil] given env, names the request's class; where it gives nil, and by default, {Route} does
    # @param sample [Numeric] share of requests that are looked at, 0 to 1
    # @param server_timing [Boolean] whether the response says it, to whoever asked
    # @param wait_threshold [Numeric, nil] seconds: a request that waited longer for the GVL makes the flight recorder dump
    # @raise [SettingError] an option that isn't there, or a value that means nothing
    def initialize(app, **options)
      options = OPTIONS.check(options)
      @app = app
      @route = options[:route]
      @routes = Route.new
      @sample = options.fetch(:sample, 1)
      @server_timing = options[:server_timing]
      @wait_threshold = options[:wait_threshold]
      @proxies = proxies?
      @options = options.keys
      # Puma tells of no exception that comes while it sends the body, but calls this as it passes through.
      @finish = ->(env, status, _headers, error) { finish(env, status, error || $!) }
    end

    # @param env [Hash]
    # @return [Array] the application's response
    def call(env)
      before = env[REQUEST]
      return inside(env, before) unless before.nil? || before.finished? # what is in front may call again after an error
      return @app.call(env) if left_out?(env) || !(work = Work.answer { @routes.name(env) })

      env[REQUEST] = work
      said = env[QueueTime::HEADER] and tell_queued(work, said, env)
      callbacks = env[FINISHED] # a server that has it calls them when all is sent; else whoever closes the body does
      told = callbacks.push(@finish) unless callbacks.nil? || callbacks.frozen?
      will_tell = told
      begin
        work.answering = true
        response = @app.call(env)
        @routes.look(env)
        return response if told && !@server_timing && !watched?(env, response)

        answer = Integrations::Guard.masked("Headway::Rack") { completed(env, work, response, told) }
        will_tell ||= answer && @proxies
        answer || response
      ensure
        work.look # what follows may be on another thread
        # Nobody will tell of the end: after an exception, a throw or a kill; and without the gem rack, when this is it. Servers of
        # fibers, which tell of what is no StandardError to nobody, cancel requests so.
        finish(env, nil, answer ? nil : $!) unless will_tell && (response || !work.shared?)
      end
    end

    private

    def left_out?(env)
      env[LEFT_OUT] || (@sample < 1 && rand >= @sample && env[LEFT_OUT] = true)
    end

    def tell_queued(work, said, env)
      Integrations::Guard.masked("Headway::Rack") { work.queued = QueueTime.of(said, env) }
    end

    # It stands there twice, as where an application in Rails, which has one already, names it, too.
    def inside(env, work)
      if @options.any? && work.answering
        Notices.add("Headway::Rack stands there twice: #{@options.join(", ")} of the inner one say nothing (in Rails config.headway takes them)")
      end
      @app.call(env).tap { @routes.look(env) }
    end

    def completed(env, work, response, told)
      return if response.nil? # the server will say what it makes of that

      status, headers, body = *response
      work.status = Integer(status, exception: false) unless told
      body = body_proxy(env, status, body, told) if @proxies && (!told || watched?(env, response))
      [status, @server_timing ? timed(headers, work) : headers, body]
    end

    # Puma, which tells, doesn't where closing the body raises. Others look at what kind of body it is: Falcon has its own. So does Puma
    # with a File: it sends what is left of that very one, and of anything else with a path what it finds there.
    def watched?(env, response)
      return false unless @proxies && response.is_a?(Array)

      body = response[2]
      body.respond_to?(:close) && !body.is_a?(::File) && env["SERVER_SOFTWARE"].to_s.start_with?("puma")
    end

    def body_proxy(env, status, body, told)
      return Closing.new(body) { |error| finish(env, status, error) } if told

      before = $! # what somebody is rescuing already, and the request is part of
      ::Rack::BodyProxy.new(body) { finish(env, status, $!.equal?(before) ? nil : $!) } # closed as something passes through, too
    end

    def proxies?
      require "rack/body_proxy"
      require_relative "rack/closing"
      true
    rescue LoadError # an application without the gem rack: then its bodies aren't looked at
      false
    end

    def finish(env, status, error)
      work = env[REQUEST] || request_here # a middleware in front may have copied the server's, as Rack::Cache does
      return if work.nil? || work.finished?

      work.status ||= status if status.is_a?(Integer) # pitchfork tells something else where the application raises
      own = Integrations::Guard.guard("the route of Headway::Rack") { @route.call(env).to_s } if @route
      work.name = own.nil? || own.empty? ? @routes.name(env, work.status || RAISED) : own
      work.finish(error)
      Integrations::Guard.masked("the wait_threshold of Headway::Rack") { Recorder::Alarm.ring("request") } if @wait_threshold && work.waiting > @wait_threshold
    end

    def request_here
      work = Work.current
      work if work&.kind == :request
    end

    # Milliseconds until the body begins.
    def timed(headers, work)
      name = headers.keys.find { |key| TIMING.casecmp?(key) } || TIMING
      running, waiting, suspended = work.times.map { |seconds| (seconds * 1000).round(3) }
      said = "gvl-run;dur=#{running}, gvl-wait;dur=#{waiting}, idle;dur=#{suspended}"
      said = "queue;dur=#{(work.queued * 1000).round(3)}, #{said}" if work.queued
      headers.merge(name => [*headers[name], said].join(", "))
    end
  end
end
