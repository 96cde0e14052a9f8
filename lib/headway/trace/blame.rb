# frozen_string_literal: true

module Headway
  class Trace
    # The stacks that held the GVL while others waited, of threads and of work, and those in which work was blocked. Frames are numbered over
    # all processes, so that the same line of two workers is one frame, and stacks that come to the same frames are one stack of their thread,
    # or work.
    class Blame
      # @param raw [Hash] from Native.analyse
      def initialize(raw)
        @raw = raw
        @frames = {}
        @numbers = raw[:processes].map { {} }
        @stacks = heaviest_first
      end

      # @param places [Array] of one name of work: where it was blocked, say
      # @return [Array<Hash>] longest first
      def places(places)
        sums = places.each_with_object(Hash.new(0)) do |(process, frames, ns), all|
          all[frames.map { |frame| number(process, frame) }] += ns
        end
        sums.sort_by { |frames, ns| [-ns, frames] }.map { |frames, ns| { frames: frames, s: seconds(ns) } }
      end

      # With the frames of all that was asked for.
      def to_h
        { samples: @raw[:blame_samples], weight_s: seconds(@raw[:blame]), folded: folded,
          frames: @frames.keys.map { |method, file, line| { method: method, file: file, line: line } }, stacks: @stacks }
      end

      private

      def heaviest_first
        sorted = sums.sort_by { |(thread, frames), (weight_ns, _)| [-weight_ns, thread, frames] }
        sorted.map do |(thread, frames), (weight_ns, samples, late_ns)|
          { thread: thread, frames: frames, weight_s: seconds(weight_ns), samples: samples, late_s: seconds(late_ns) }
        end
      end

      def sums
        @raw[:blames].each_with_object({}) do |(thread, frames, *figures), sums|
          process = @raw[:threads][thread][:process]
          key = [thread, frames.map { |frame| number(process, frame) }]
          sums[key] = figures.zip(sums.fetch(key, [0, 0, 0])).map(&:sum)
        end
      end

      def number(process, frame)
        @numbers[process][frame] ||= begin
          key = @raw[:processes][process][:frames].fetch(frame)
          @frames[key] ||= @frames.size
        end
      end

      # What the recorders and the pass could not keep.
      def folded
        @raw[:processes].sum { |process| process[:folded] } + @raw[:blames_folded]
      end

      def seconds(duration_ns)
        duration_ns.fdiv(1_000_000_000)
      end
    end
    private_constant :Blame
  end
end
