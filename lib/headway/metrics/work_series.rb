# frozen_string_literal: true

module Headway
  module Metrics
    # Requests, or jobs: for each class of them how long they waited for the GVL, and what they did with their time.
    class WorkSeries
      # Classes of requests or jobs kept apart.
      CLASSES = 50

      # @param kind [Symbol] :request or :job: also the label's name
      def initialize(kind, classes: CLASSES)
        @wait = Histogram.new("ruby_gvl_#{kind}_wait_seconds", bounds: BOUNDS, labels: [kind], most: classes,
                              help: "What each #{kind} waited for the GVL in all.")
        @time = Counter.new("ruby_gvl_#{kind}_seconds_total", labels: [kind, :state], most: classes * STATES.size,
                            help: "Time of #{kind}s by what their threads did: running, ready (waiting for the GVL), suspended.")
      end

      STATES = %w[running ready suspended].freeze

      # @param name [String] its class: a route such as "GET /orders/:id", a job's class
      # @param running [Numeric] seconds with the GVL
      # @param ready [Numeric] seconds waiting for it
      # @param suspended [Numeric] seconds blocked
      # @return [void]
      def observe(name, running:, ready:, suspended:)
        @wait.observe(ready, name)
        STATES.zip([running, ready, suspended]) { |state, seconds| @time.add(name, state, by: seconds) }
      end

      # @return [Array<Family>]
      def families = [@wait.family, @time.family]
    end
  end
end
