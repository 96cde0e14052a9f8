# frozen_string_literal: true

module Headway
  module Report
    class Firefox
      # When each blame stack was seen: the analysis sums them up, the trace's events have the times.
      class Sightings
        # So many are looked up; a profile with more is read by its sums anyway.
        MOST = 200_000
        private_constant :MOST

        # @param trace [Trace]
        # @param data [Hash] its analysis
        # @return [Hash{Integer => Hash{Array<Integer> => Array<Float>}}] by thread's id and stack; empty when there are none to
        #   look up, or too many
        def self.of(trace, data)
          return {} unless trace.respond_to?(:stack) && data[:blame][:samples].between?(1, MOST)

          new(trace, data).to_h
        end

        def initialize(trace, data)
          @trace = trace
          @threads = data[:threads].to_h { |thread| [thread.values_at(:process, :number), thread[:id]] }
          @frames = data[:blame][:frames].each_with_index.to_h { |frame, index| [frame.values_at(:method, :file, :line), index] }
          @stacks = {}
        end

        # @return [Hash]
        def to_h
          found = Hash.new { |threads, thread| threads[thread] = Hash.new { |stacks, stack| stacks[stack] = [] } }
          # One file after the other: there may be more of them than this process can have open.
          @threads.keys.map(&:first).uniq.each { |process| look(process, found) }
          found.default_proc = nil
          found
        end

        private

        def look(process, found)
          @trace.events(process).each do |_, time_s, number, kind, value|
            next unless kind == :blame && (thread = @threads[[process, number]])

            found[thread][stack(process, value)] << time_s
          end
        end

        def stack(process, id)
          @stacks[[process, id]] ||= @trace.stack(process, id).map { |frame| @frames[frame] }
        end
      end
    end
  end
end
