# frozen_string_literal: true

require "json"
require_relative "rows"
require_relative "timeline"
require_relative "firefox/sightings"
require_relative "firefox/stacks"
require_relative "firefox/markers"

module Headway
  module Report
    # A trace for profiler.firefox.com, in its "processed profile" format: a thread per thread, its waits, collections and
    # marks as markers, and its blame as samples: the call tree says what the thread held the GVL with while others waited.
    #
    # The analysis knows what each stack weighs in all; when it was seen is looked up among the events.
    class Firefox
      # The viewer brings older versions up to its own; this one has all that is needed here.
      VERSION = 48
      GECKO_VERSION = 28
      # The first grey one is what has no category of its own.
      CATEGORIES = [%w[Other grey], %w[Waiting red], ["Garbage collection", "orange"], %w[Marks blue]].freeze
      OTHER, WAITING, COLLECTING, MARKING = *0..3
      # The viewer is at its limits with more markers than this.
      MOST_WAITS = 200_000

      # @param document [Document]
      # @param most_waits [Integer] with more than that, the longest of them are shown
      def initialize(document, most_waits: MOST_WAITS)
        @document = document
        @data = document.to_h
        @seen = Sightings.of(document.trace, @data)
        @labels = document.labels
        @timeline = Timeline.new(document.trace, @data[:threads])
        @most_waits = most_waits
      end

      # @param output [IO]
      def write(output)
        output << '{"meta":' << JSON.generate(meta) << ',"libs":[],"threads":['
        lanes = {}
        @timeline.each_lane { |thread, lane| lanes[thread] = lane }
        threads.each_with_index do |thread, index|
          output << "," unless index.zero?
          output << JSON.generate(thread_of(thread, lanes[thread[:id]]))
        end
        output << "]}\n"
      end

      private

      def meta
        {
          interval: 1, startTime: started_ms, processType: 0, product: product, stackwalk: 1, debug: false,
          version: GECKO_VERSION, preprocessedProfileVersion: VERSION, symbolicated: true,
          importedFrom: "Headway #{Headway::VERSION}", logicalCPUs: @data[:processes].first&.dig(:cpus),
          categories: CATEGORIES.map { |name, color| { name: name, color: color, subcategories: ["Other"] } },
          markerSchema: Markers::SCHEMA, sampleUnits: { time: "ms", eventDelay: "ms", threadCPUDelta: "ns" },
          extra: [{ label: "Headway", entries: facts }]
        }.compact
      end

      # What the viewer shows beside the profile.
      def facts
        notes = [*@data[:notes], *("the #{left_out} shortest waits are left out" if left_out.positive?)]
        [["Headline", @data[:headline]], *notes.map { |note| ["Note", note] }]
          .map { |label, value| { label: label, format: "string", value: value } }
      end

      def product
        @data[:processes].map { |process| process[:command].to_s }.uniq.first(3).join(", ")
      end

      def started_ms
        require "time"
        first = @data[:processes].min_by { |process| process[:start_s] }
        first ? (Time.iso8601(first[:started_at]).to_r * 1000).to_f : 0
      rescue ArgumentError, TypeError
        0 # the viewer then shows 1970, and every time within the trace as it is
      end

      # The viewer has nothing to show without a thread.
      def threads
        return @data[:threads] unless @data[:threads].empty?

        [{ id: 0, process: @data[:processes].first&.dig(:id), number: 1, start_s: 0.0, end_s: 0.0 }]
      end

      def thread_of(thread, lane)
        process = processes.fetch(thread[:process]) { { command: "", pid: 0, start_s: 0.0, end_s: 0.0 } }
        strings = {}
        stacks = Stacks.new(@data[:blame], strings)
        {
          name: @labels.thread(thread[:id]), isMainThread: main?(thread), processType: "default",
          processName: process[:command], processStartupTime: ms(process[:start_s]),
          processShutdownTime: ms(process[:end_s]), registerTime: ms(thread[:start_s]),
          unregisterTime: ms(thread[:end_s]), pausedRanges: [], pid: process[:pid].to_s, tid: thread[:id] + 1,
          samples: stacks.samples(thread, @seen[thread[:id]]), **stacks.tables,
          markers: markers(thread, lane, strings), stringArray: strings.keys
        }
      end

      def markers(thread, lane, strings)
        markers = Markers.new(strings)
        add_waits(markers, thread[:id], lane) if lane
        add_marks(markers, thread[:id])
        add_collections(markers, thread[:process]) if main?(thread)
        markers.to_h
      end

      def add_waits(markers, thread, lane)
        Timeline.each_segment(lane) do |from, to, state|
          next if state != Timeline::READY || to - from < shortest_wait

          holders = @timeline.holders(thread, from, to)
          markers.add("Wait", WAITING, from / 1e4, to / 1e4,
                      { type: "Wait", holder: @labels.thread(holders.first&.first), holders: list(holders) })
        end
      end

      def list(holders)
        return if holders.size < 2 # the one is named already

        holders.first(3).map { |thread, ticks| "#{@labels.thread(thread)} #{(ticks / 1e4).round(3)} ms" }.join(", ")
      end

      def add_marks(markers, thread)
        @marks ||= @data[:marks].group_by { |mark| mark[:thread] }
        @marks.fetch(thread, []).each do |mark|
          markers.add(mark[:name], MARKING, ms(mark[:start_s]), mark[:end_s] && ms(mark[:end_s]), { type: "Mark" })
        end
      end

      def add_collections(markers, process)
        @timeline.each_gc_lane do |of_process, lane|
          next unless of_process == process

          Timeline.each_segment(lane) do |from, to, state|
            markers.add("GC", COLLECTING, from / 1e4, to / 1e4, { type: "GC" }) if state == Timeline::COLLECTING
          end
        end
      end

      # In ticks; 0 when there are not too many waits to show all.
      def shortest_wait
        @shortest_wait ||= @data[:totals][:wait][:count] > @most_waits ? waits.max(@most_waits).last : 0
      end

      def left_out
        @left_out ||= shortest_wait.zero? ? 0 : waits.count { |ticks| ticks < shortest_wait }
      end

      def waits
        @waits ||= [].tap do |waits|
          @timeline.each_lane do |_, lane|
            Timeline.each_segment(lane) { |from, to, state| waits << (to - from) if state == Timeline::READY }
          end
        end
      end

      # The viewer groups a process' threads under one that it calls main.
      def main?(thread)
        @mains ||= threads.group_by { |one| one[:process] }
                          .transform_values { |one_process| one_process.min_by { |one| one[:number] }[:id] }
        @mains[thread[:process]] == thread[:id]
      end

      def processes
        @processes ||= @data[:processes].to_h { |process| [process[:id], process] }
      end

      def ms(seconds) = (seconds * 1000.0).round(4)
    end
  end
end
