# frozen_string_literal: true

module Headway
  class Trace
    # The events of several files, merged in the order of their times. Of each file one batch is in memory.
    class Events
      # @param sources [Array<Source>]
      def initialize(sources)
        @sources = sources
      end

      def each
        sources = @sources.select(&:time_ns)
        until sources.empty?
          first = sources.size == 1 ? sources.first : sources.min_by(&:time_ns)
          yield first.take
          sources.delete(first) unless first.time_ns
        end
      end

      # The events of one file.
      class Source
        # Of the next event, since the trace's time 0; nil: there is none.
        attr_reader :time_ns

        def initialize(id, file, origin_ns)
          @id = id
          @file = file
          @origin_ns = origin_ns
          @latest_ns = 0
          @batch = []
          @place = 0
          look_ahead
        end

        def take
          _, number, kind, value = @batch[@place]
          event = [@id, @time_ns.fdiv(1_000_000_000), number, kind, value]
          @place += 1
          look_ahead
          event
        end

        private

        # As in the analysis, what comes too late happened at the latest time seen.
        def look_ahead
          while @place == @batch&.size
            @batch = @file.next_events
            @place = 0
          end
          return @time_ns = nil unless @batch

          @latest_ns = [@latest_ns, @batch[@place].first - @origin_ns].max
          @time_ns = @latest_ns
        end
      end
    end
    private_constant :Events
  end
end
