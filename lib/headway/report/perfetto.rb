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
      private_constant :STATES

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

      # The segments are the native extension's to encode: ext/headway/core/encode_perfetto.h.
      def write_lane(output, thread, lane)
        track = thread_track(thread)
        pieces = STATES.map { |state| @packets.beginning(track, state, "thread", output).rest }
        pieces.push(@packets.ending(track).rest, *@packets.pieces_of_a_telling_end(track, "waited for, ms", output))
        @entries ||= entries(output)
        @timeline.holds(thread).perfetto(lane[:bytes], Timeline.start(lane), pieces, *@entries) { |bytes| output << bytes }
      end

      # @return [Array(String, String)] what says who held the GVL, of each thread and of nobody, and where each of these ends
      def entries(output)
        heads = [*0...@data[:threads].size, nil].map { |holder| @packets.entry_head(@labels.thread(holder), output) }
        sum = 0
        [heads.join.freeze, heads.map { |head| sum += head.bytesize }.pack("L*").freeze]
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
