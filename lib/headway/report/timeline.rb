# frozen_string_literal: true

module Headway
  module Report
    # The trace's lanes as segments, and who held the GVL during a wait: for the reports that list every segment. Times
    # are in ticks of 100 ns, the lanes' own unit, from the trace's start.
    class Timeline
      TICKS_PER_S = 10_000_000
      READY = 1
      # A lane of collections has two states.
      COLLECTING = 1

      # @param trace [Trace]
      # @param threads [Array<Hash>] the analysis' threads, to know whose process is whose
      def initialize(trace, threads)
        @lanes = trace.lanes
        @gc_lanes = trace.gc_lanes
        @process_of = threads.to_h { |thread| [thread[:id], thread[:process]] }
      end

      # @yieldparam thread [Integer] id
      # @yieldparam lane [Hash]
      def each_lane
        @lanes.each { |lane| yield lane[:thread], lane }
      end

      # @yieldparam process [Integer] id
      # @yieldparam lane [Hash]
      def each_gc_lane
        @gc_lanes.each { |lane| yield lane[:process], lane }
      end

      # Decodes little-endian base-128 numbers: a duration, and a state in its two lowest bits. A segment may round to no
      # length; those are left out.
      #
      # @yieldparam from [Integer] ticks
      # @yieldparam to [Integer] ticks
      # @yieldparam state [Integer]
      def self.each_segment(lane)
        from = start(lane)
        number = shift = 0
        lane[:bytes].each_byte do |byte|
          number |= (byte & 127) << shift
          next shift += 7 if byte > 127

          to = from + (number >> 2)
          yield from, to, number & 3 if to > from
          from = to
          number = shift = 0
        end
      end

      # @param thread [Integer] who waited
      # @return [Array<Array(Integer, Integer)>] each thread that held the GVL in that time and for how many ticks, the
      #   longest first; nil instead of a thread stands for nobody
      def holders(thread, from, to)
        holds(thread).during(from, to)
      end

      # @param thread [Integer]
      # @return [Native::Traces::Holds] of its process
      def holds(thread)
        process = @process_of[thread]
        @lanes_of ||= @lanes.group_by { |lane| @process_of[lane[:thread]] }
        (@holds ||= {})[process] ||= Native::Traces::Holds.new(
          @lanes_of.fetch(process, []).map { |lane| [lane[:thread], lane[:bytes], Timeline.start(lane)] }
        )
      end

      # @return [Integer] the tick a lane starts at
      def self.start(lane)
        (lane[:start_s] * TICKS_PER_S).round
      end
    end
  end
end
