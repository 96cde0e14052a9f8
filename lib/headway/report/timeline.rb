# frozen_string_literal: true

module Headway
  module Report
    # The trace's lanes as segments, and who held the GVL during a wait: for the reports that list every segment. Times
    # are in ticks of 100 ns, the lanes' own unit, from the trace's start.
    class Timeline
      TICKS_PER_S = 10_000_000
      RUNNING = 0
      READY = 1
      SUSPENDED = 2
      ABSENT = 3
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
        from = (lane[:start_s] * TICKS_PER_S).round
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
        starts, ends, owners = holds(@process_of[thread])
        index = starts.bsearch_index { |start| start > from } || starts.size
        index -= 1 if index.positive?
        found = {}
        free = to - from
        while (start = starts[index]) && start < to
          finish = ends[index]
          held = (finish < to ? finish : to) - (start > from ? start : from)
          if held.positive?
            owner = owners[index]
            found[owner] = (found[owner] || 0) + held
            free -= held
          end
          index += 1
        end
        found[nil] = free if free.positive?
        found.size < 2 ? found.to_a : found.sort_by { |_, ticks| -ticks }
      end

      private

      # The holds of a process in order: where they start, where they end, whose they are. Sorted as integers that carry
      # their place, which is many times faster than sorting triples.
      def holds(process)
        @holds ||= {}
        @holds[process] ||= begin
          starts, ends, owners = collect(process)
          bits = starts.size.bit_length
          order = starts.each_with_index.map { |start, index| (start << bits) | index }.sort!
          order.map! { |key| key & ((1 << bits) - 1) }
          [starts, ends, owners].map { |column| order.map { |index| column[index] } }
        end
      end

      def collect(process)
        starts = []
        ends = []
        owners = []
        @lanes.each do |lane|
          thread = lane[:thread]
          next unless @process_of[thread] == process

          Timeline.each_segment(lane) do |from, to, state|
            next unless state == RUNNING

            starts << from
            ends << to
            owners << thread
          end
        end
        [starts, ends, owners]
      end
    end
  end
end
