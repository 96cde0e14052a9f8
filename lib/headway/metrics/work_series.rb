# frozen_string_literal: true

module Headway
  module Metrics
    # Requests, or jobs: for each class of them how long they waited for the GVL, and what they did with their time. Every request
    # comes through here, on a path that is always cold: one look-up and one native call, which the GVL makes one step.
    class WorkSeries < Series
      # Classes of requests or jobs kept apart.
      CLASSES = 50

      # @param kind [Symbol] :request or :job: also the label's name
      def initialize(kind, classes: CLASSES)
        super("ruby_gvl_#{kind}_wait_seconds", help: "What each #{kind} waited for the GVL in all.", labels: [kind], most: classes)
        @kind = kind
      end

      # @param name [String] its class: a route such as "GET /orders/:id", a job's class
      # @param running [Numeric] seconds with the GVL; one below 0, of a clock that was set back, counts as none
      # @param ready [Numeric] seconds waiting for it
      # @param suspended [Numeric] seconds blocked
      # @param queued [Numeric, nil] seconds that it stood in a queue before it began; nil: not known
      # @return [void]
      def observe(name, running:, ready:, suspended:, queued: nil)
        return unless defined?(Native)

        afresh
        (@values[name] || sums_of(name)).add_seconds(running, ready, suspended)
        @queued.add_seconds(0, queued, 0) if queued
      end

      # A fault of ours breaks nothing; what another thread raises meanwhile isn't taken for one.
      #
      # @param work [Work] a finished one
      # @return [void]
      def add(work)
        name = work.name
        sums = @values[name] || begin
          afresh
          Integrations::Guard.masked("Headway's own count of works") { sums_of(name) }
        end
        return if sums.nil? || sums.add(work, @queued)

        afresh # what is there is its parent's
        add(work)
      end

      # @return [Array<Family>]
      def families
        afresh
        waits = {}
        times = {}
        @lock.synchronize { @values.transform_values(&:to_h) }.each do |name, sums|
          waits[{ @kind => name }] = Distribution.new(BOUNDS, *sums.delete(:wait))
          sums.each { |state, seconds| times[{ @kind => name, state: state.to_s }] = seconds }
        end
        [Family.new(@name, :histogram, @help, waits, @process),
         Family.new("ruby_gvl_#{@kind}_seconds_total", :counter, time_help, times, @process),
         Family.new("headway_#{@kind}_queue_seconds", :histogram, queue_help, queues, @process)]
      end

      private

      def begin_at_zero
        @queued = Native::WorkSums.new(BOUNDS_NS) if defined?(Native) # of which only what waited counts
        super
      end

      # Once there are as many as may be, without the lock: nothing that may block belongs in a mask.
      def sums_of(name)
        name = Reason.utf8(name)
        return @values[name] || @values[OTHERS] if @values.size >= @most && @values.key?(OTHERS)

        @lock.synchronize do
          name = OTHERS unless @values.key?(name) || @values.size < @most
          @values[name] ||= Native::WorkSums.new(BOUNDS_NS)
        end
      end

      # None where nobody says.
      def queues
        queued = @queued ? @queued.to_h[:wait] : [[], 0, 0]
        queued.last.zero? ? {} : { {} => Distribution.new(BOUNDS, *queued) }
      end

      def queue_help
        "What #{@kind}s stood in a queue before they began, as far as that is known."
      end

      def time_help
        "Time of #{@kind}s by what their threads did: running, ready (waiting for the GVL), suspended."
      end
    end
  end
end
