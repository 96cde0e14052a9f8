# frozen_string_literal: true

module Headway
  module Metrics
    # Requests, or jobs: for each class of them how long they waited for the GVL, and what they did with their time. Every request
    # comes through here: one lock and one look-up for all its figures.
    class WorkSeries < Series
      # Classes of requests or jobs kept apart.
      CLASSES = 50

      # What is known of one class.
      class Sums
        attr_reader :running, :ready, :suspended, :counts, :count

        def initialize
          @running = @ready = @suspended = 0.0
          @counts = Array.new(BOUNDS.size, 0)
          @count = 0
        end

        # @return [Sums] itself
        def add(running, ready, suspended)
          @running += running if running > 0 # `positive?` is a call
          @ready += ready if ready > 0
          @suspended += suspended if suspended > 0
          @count += 1
          index = 0 # most are short, and a search by halves calls a block
          index += 1 while index < BOUNDS.size && ready > BOUNDS[index]
          @counts[index] += 1 if index < BOUNDS.size
          self
        end

        # @return [Distribution]
        def waits = Distribution.of_counts(BOUNDS, @counts, @ready, @count)
      end

      # @param kind [Symbol] :request or :job: also the label's name
      def initialize(kind, classes: CLASSES)
        super("ruby_gvl_#{kind}_wait_seconds", help: "What each #{kind} waited for the GVL in all.", labels: [kind], most: classes)
        @kind = kind
      end

      # @param name [String] its class: a route such as "GET /orders/:id", a job's class
      # @param running [Numeric] seconds with the GVL; one below 0, of a clock that was set back, counts as none
      # @param ready [Numeric] seconds waiting for it
      # @param suspended [Numeric] seconds blocked
      # @return [void]
      def observe(name, running:, ready:, suspended:)
        add(name, running, ready, suspended)
      end

      # The same, for every request: without a Hash of arguments.
      # @return [void]
      def add(name, running, ready, suspended)
        @lock.synchronize do
          forget_parent
          (@values[name] || sums_of(name)).add(running, ready, suspended)
        end
        nil
      end

      # @return [Array<Family>]
      def families
        waits = {}
        times = {}
        locked do
          @values.each do |name, sums|
            waits[{ @kind => name }] = sums.waits
            { "running" => sums.running, "ready" => sums.ready, "suspended" => sums.suspended }.each do |state, seconds|
              times[{ @kind => name, state: state }] = seconds
            end
          end
        end
        [Family.new(@name, :histogram, @help, waits), Family.new("ruby_gvl_#{@kind}_seconds_total", :counter, time_help, times)]
      end

      private

      def sums_of(name)
        name = text(name)
        name = OTHER unless @values.key?(name) || @values.size < @most
        @values[name] ||= Sums.new
      end

      def time_help = "Time of #{@kind}s by what their threads did: running, ready (waiting for the GVL), suspended."
    end
  end
end
