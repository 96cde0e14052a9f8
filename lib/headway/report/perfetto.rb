# frozen_string_literal: true

require_relative "timeline"
require_relative "perfetto/packets"
require_relative "perfetto/marks"

module Headway
  module Report
    # A trace for Perfetto's viewer: a track per process and thread, on it a slice per segment (running, ready,
    # suspended), beneath it the thread's marks, and a track of collections per process. The end of each ready slice says
    # who held the GVL meanwhile, and for how many milliseconds.
    class Perfetto
      STATES = %w[running ready suspended].freeze
      # A wait behind more threads than this names the longest of them.
      HOLDERS = 8
      BUFFER = 1 << 16
      private_constant :STATES, :HOLDERS, :BUFFER

      # @param document [Document]
      def initialize(document)
        @data = document.to_h
        @labels = document.labels
        @timeline = Timeline.new(document.trace, @data[:threads])
        @packets = Packets.new
      end

      # @param output [IO] takes binary
      def write(output)
        output << @packets.start
        write_tracks(output)
        @timeline.each_lane { |thread, lane| write_lane(output, thread, lane) }
        @timeline.each_gc_lane { |process, lane| write_gc(output, process, lane) }
        Marks.new(@data[:marks], @packets) { |thread| thread_track(thread) }.write(output)
      end

      private

      def write_tracks(output)
        @data[:processes].each { |process| output << @packets.process(process_track(process[:id]), process) }
        pids = @data[:processes].to_h { |process| [process[:id], process[:pid]] }
        @data[:threads].each do |thread|
          output << @packets.thread(thread_track(thread[:id]), pids[thread[:process]], thread[:id],
                                    @labels.thread(thread[:id]))
        end
      end

      def process_track(id)
        @process_tracks ||= Hash.new { |tracks, process| tracks[process] = @packets.new_track }
        @process_tracks[id]
      end

      def thread_track(id)
        @thread_tracks ||= Hash.new { |tracks, thread| tracks[thread] = @packets.new_track }
        @thread_tracks[id]
      end

      def write_lane(output, thread, lane)
        track = thread_track(thread)
        beginnings = STATES.map { |state| @packets.beginning(track, state, "thread", output) }
        ending = @packets.ending(track)
        buffer = String.new(encoding: Encoding::BINARY, capacity: BUFFER + 1024)
        time = Protobuf.varint((lane[:start_s] * Timeline::TICKS_PER_S).round * 100)
        Timeline.each_segment(lane) do |from, to, state|
          start = time # segments follow one another without gaps
          time = Protobuf.varint(to * 100)
          next if state == Timeline::ABSENT

          beginnings[state].append(buffer, start)
          event = state == Timeline::READY ? wait_end(track, @timeline.holders(thread, from, to), output) : ending
          event.append(buffer, time)
          flush(output, buffer) if buffer.bytesize > BUFFER
        end
        output << buffer
      end

      # Names it gives a number go to the output before the buffer does.
      def wait_end(track, holders, output)
        entries = holders.first(HOLDERS).map { |holder, ticks| [@labels.thread(holder), ticks / 10_000.0] }
        @packets.telling_end(track, "waited for, ms", entries, output)
      end

      def flush(output, buffer)
        output << buffer
        buffer.clear
      end

      def write_gc(output, process, lane)
        track = nil
        Timeline.each_segment(lane) do |from, to, state|
          next unless state == Timeline::COLLECTING

          unless track
            track = @packets.new_track
            output << @packets.child(track, process_track(process), "GC")
          end
          output << @packets.slice(track, "GC", "gc", from * 100, to * 100, output)
        end
      end
    end
  end
end
