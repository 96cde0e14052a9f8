# frozen_string_literal: true

module Headway
  module Report
    class Perfetto
      # The marks of each thread on tracks beneath its own. Spans of one thread needn't nest (fibers take turns in them),
      # and slices of one track must: a span goes to the thread's first track where it nests.
      class Marks
        # @param marks [Array<Hash>] the trace's
          # @yieldparam thread [Integer]
        # @yieldreturn [Integer] the thread's own track
        def initialize(marks, packets, &track_of)
          @marks = marks
            @packets = packets
          @track_of = track_of
        end

        # @param output [IO]
        def write(output)
          @marks.group_by { |mark| mark[:thread] }.each do |thread, marks|
            open = [] # of each track the ends of the spans it is in
            tracks = []
            marks.sort_by { |mark| [mark[:start_s], -(mark[:end_s] || mark[:start_s])] }.each do |mark|
              index = place(open, mark)
              tracks[index] ||= describe(output, thread)
              output << encode(tracks[index], mark, output)
            end
          end
        end

        private

        def place(open, mark)
          finish = mark[:end_s] || mark[:start_s]
          index = open.index do |ends|
            ends.pop while ends.last && ends.last <= mark[:start_s]
            ends.empty? || finish <= ends.last
          end
          index ||= open.push([]).size - 1
          open[index] << finish if finish > mark[:start_s]
          index
        end

        def describe(output, thread)
          track = @packets.new_track
          output << @packets.child(track, @track_of.call(thread), "marks")
          track
        end

        def encode(track, mark, output)
          start_ns = nanoseconds(mark[:start_s])
          return @packets.instant(track, mark[:name], "mark", start_ns, output) unless mark[:end_s]

          @packets.slice(track, mark[:name], "mark", start_ns, nanoseconds(mark[:end_s]), output)
        end

        def nanoseconds(seconds) = [(seconds * 1e9).round, 0].max
      end
    end
  end
end
