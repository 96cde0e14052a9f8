# frozen_string_literal: true

module Headway
  module Report
    class Firefox
      # A thread's blame as the viewer's tables: a sample means a stack, a stack a frame and the stack it was called from,
      # a frame a function and a line.
      class Stacks
        # @param blame [Hash] the trace's
        # @param strings [Hash{String => Integer}] the thread's strings by their place, added to here
        def initialize(blame, strings)
          @blame = blame
          @strings = strings
          @functions = {} # [name, file] => place
          @frames = {} # [function, line] => place
          @stacks = {} # [stack it was called from, frame] => place
          @of_thread = nil
        end

        # @param thread [Hash] a row of the trace's
        # @param seen [Hash{Array<Integer> => Array<Float>}, nil] when each of the thread's stacks was seen, in seconds
        # @return [Hash] the samples table; what {#tables} returns is complete only after it
        def samples(thread, seen = nil)
          stacks = @blame[:stacks].select { |stack| stack[:thread] == thread[:id] && stack[:weight_s].positive? }
          rows = seen ? at_their_times(stacks, seen, thread) : spread(stacks, thread)
          { stack: rows.map { |_, frames,| place(frames) }, time: rows.map { |time,| (time * 1000.0).round(4) },
            weight: rows.map { |_, _, weight| (weight * 1000.0).round(4) }, weightType: "tracing-ms", length: rows.size }
        end

        # @return [Hash]
        def tables
          { stackTable: stack_table, frameTable: frame_table, funcTable: function_table,
            resourceTable: { length: 0, lib: [], name: [], host: [], type: [] },
            nativeSymbols: { libIndex: [], address: [], name: [], functionSize: [], length: 0 } }
        end

        private

        # A stack that was seen several times weighs the same each time: the trace keeps only the sum.
        def at_their_times(stacks, seen, thread)
          stacks.flat_map do |stack|
            times = seen.fetch(stack[:frames]) { [thread[:start_s]] }
            times.map { |time| [time, stack[:frames], stack[:weight_s] / times.size] }
          end.sort_by(&:first)
        end

        # Evenly over the thread's life.
        def spread(stacks, thread)
          step_s = (thread[:end_s] - thread[:start_s]) / [stacks.size, 1].max
          stacks.each_with_index.map do |stack, index|
            [thread[:start_s] + step_s * (index + 0.5), stack[:frames], stack[:weight_s]]
          end
        end

        # @param frames [Array<Integer>] leaf first
        # @return [Integer, nil]
        def place(frames)
          frames.reverse.reduce(nil) do |caller_stack, index|
            key = [caller_stack, frame(@blame[:frames][index] || {})]
            @stacks[key] ||= @stacks.size
          end
        end

        def frame(frame)
          line = frame[:line] if frame[:line].to_i.positive?
          name = frame[:method].to_s
          name = Labels.place(frame) if name.empty?
          function = @functions[[string(name), string(frame[:file].to_s)]] ||= @functions.size
          @frames[[function, line]] ||= @frames.size
        end

        def string(text)
          @strings[text] ||= @strings.size
        end

        def stack_table
          count = @stacks.size
          { frame: @stacks.keys.map(&:last), prefix: @stacks.keys.map(&:first), category: zeros(count),
            subcategory: zeros(count), length: count }
        end

        def frame_table
          count = @frames.size
          nils = Array.new(count)
          { address: Array.new(count, -1), inlineDepth: zeros(count), category: zeros(count), subcategory: zeros(count),
            func: @frames.keys.map(&:first), nativeSymbol: nils, innerWindowID: nils, implementation: nils,
            line: @frames.keys.map(&:last), column: nils, length: count }
        end

        def function_table
          count = @functions.size
          nils = Array.new(count)
          { name: @functions.keys.map(&:first), isJS: Array.new(count, false), relevantForJS: Array.new(count, false),
            resource: Array.new(count, -1), fileName: @functions.keys.map(&:last), lineNumber: nils, columnNumber: nils,
            length: count }
        end

        def zeros(count) = Array.new(count, 0)
      end
    end
  end
end
