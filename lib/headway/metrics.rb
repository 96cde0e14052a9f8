# frozen_string_literal: true

require_relative "base"
return if Headway::Copies.instead(__FILE__)

require_relative "notices"
require_relative "reason"
require_relative "integrations/worker"

module Headway
  # What a monitoring system is to know of this process: counters, gauges and histograms in base units. The process's are read when
  # they are asked for and cost nothing until then; works are added up as they end.
  #
  #   map("/metrics") { run Headway::Metrics::Endpoint.new }      # config.ru, for Prometheus
  #
  # Adapters for other systems are in {Adapters}; each loads nothing but what the application has.
  module Metrics
    # Upper bounds of histograms, in seconds. Fixed: series of different versions and processes must add up.
    BOUNDS = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0].freeze
    BOUNDS_NS = BOUNDS.map { |seconds| (seconds * 1e9).round }.freeze
    private_constant :BOUNDS_NS

    autoload :Endpoint, File.expand_path("metrics/endpoint", __dir__)
    autoload :Deltas, File.expand_path("metrics/deltas", __dir__)
    autoload :Reporter, File.expand_path("metrics/reporter", __dir__)
    autoload :Siblings, File.expand_path("metrics/siblings", __dir__)

    # Where Headway's figures go besides the {Endpoint}.
    module Adapters
      %w[PrometheusClient Yabeda OpenTelemetry StatsD].each do |name|
        file = name.gsub(/(?<=[a-z])(?=[A-Z])/, "_").downcase.sub("stats_d", "statsd")
        autoload name, File.expand_path("metrics/adapters/#{file}", __dir__)
      end

      # @api private
      # @raise [LoadError] that names the gem
      def self.need(library, gem)
        require library
      rescue LoadError => error
        raise unless error.path == library

        raise LoadError, "Headway's adapter needs the gem #{gem}: add it to the Gemfile", cause: nil
      end

      # Tells a receiver each change by itself: one that it refuses, as a name is taken or none for it, keeps no other back. It isn't told
      # again, as a part of it may have got there. (Guarded without a mask: receivers block, and start threads.)
      #
      # @api private
      # @param to [String] who is told, for notices
      # @param changes [Array<Deltas::Change>]
      # @yieldparam change [Deltas::Change]
      # @return [void]
      def self.tell(to, changes)
        changes.each { |change| Integrations::Guard.guard("#{change.name} for #{to}") { yield change } }
      end
    end
  end
end

require_relative "metrics/family"
require_relative "metrics/series"
require_relative "metrics/work_series"
require_relative "metrics/gvl"
require_relative "metrics/exposition"

module Headway
  module Metrics
    @requests = WorkSeries.new(:request)
    @jobs = WorkSeries.new(:job)
    @sources = [Gvl, @requests, @jobs]

    class << self
      # Counts a request that has ended.
      #
      # @param name [String] its class, such as "GET /orders/:id": the first {WorkSeries::CLASSES} are kept apart
      # @param running [Numeric] seconds with the GVL
      # @param ready [Numeric] seconds waiting for it
      # @param suspended [Numeric] seconds blocked
      # @param queued [Numeric, nil] seconds that it stood in a queue before it began; nil: not known
      # @return [void]
      def request(name, running:, ready:, suspended:, queued: nil)
        @requests.observe(name, running: running, ready: ready, suspended: suspended, queued: queued)
      end

      # Counts a job that has ended; see {request}.
      # @return [void]
      def job(name, running:, ready:, suspended:, queued: nil)
        @jobs.observe(name, running: running, ready: ready, suspended: suspended, queued: queued)
      end

      # @return [String] what tells this process from its siblings: what was said, else its number among Puma's workers, or "master",
      #   else its process number
      def worker
        (said_worker || Integrations.worker || ::Process.pid).to_s
      end

      # @return [Boolean] whether somebody has numbered this process
      def worker?
        !(said_worker || Integrations.worker).nil?
      end

      # @param value [String, Integer, nil] a number that the next process in its place has too: fewer series come and go. What this
      #   process forks has it not: two that count under one number would look like one whose counters jump
      def worker=(value)
        @worker = value && [Forks.number, value.to_s]
      end

      # Adds figures to those of every endpoint and adapter. Of two sources with figures of one name the last one counts: code that is
      # reloaded registers anew.
      #
      # @param source [#families] a {Counter}, a {Histogram}, or anything that answers Array<{Family}>
      # @return [void]
      # @raise [SettingError]
      def register(source)
        raise SettingError, "#{source.inspect[0, 60]} has no figures: give something with a method families" unless source.respond_to?(:families)

        @sources = @sources.reject { |other| other.equal?(source) || namesake?(other, source) } << source
        nil
      end

      # @return [Array<Family>] all there is now. A source that fails is left out, and named in {Headway.notices}
      def collect
        families = @sources.flat_map { |source| families_of(source) }
        families.reverse.uniq(&:name).reverse
      end

      # @return [String] the same in Prometheus's text format
      def text
        Exposition.text(collect)
      end

      private

      def said_worker
        forks, worker = @worker
        worker if forks == Forks.number
      end

      # Of a program's own kind whose class was loaded anew, or the same series.
      def namesake?(other, source)
        return other.name.to_s == source.name.to_s if other.is_a?(Series) && source.is_a?(Series)

        one, another = [other, source].map { |any| any.is_a?(Module) ? any : any.class }
        !one.equal?(another) && !one.name.nil? && one.name == another.name
      end

      # Adapters have to know what it is, and Prometheus takes nothing of all for one type that it doesn't know.
      def typed?(family)
        known = Family::TYPES.include?(family.type)
        known or Notices.add("the metrics #{family.name} are left out: #{family.type.inspect} is no type: give :counter, :gauge or :histogram")
        known
      end

      def families_of(source)
        source.families.map(&:plain).select { |family| typed?(family) && !family.series.empty? }
      rescue StandardError, ScriptError => error
        Notices.add("the metrics of #{source.class} are missing: #{Reason.line(error)}")
        []
      end
    end

    # Requests and jobs that Headway's integrations follow.
    Work.sum_in(request: @requests, job: @jobs) if defined?(Native)
  end
end
