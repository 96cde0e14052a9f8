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

        # @return [Hash] the samples table; what {#tables} returns is complete only after it
        def samples(thread)
          stacks = @blame[:stacks].select { |stack| stack[:thread] == thread[:id] && stack[:weight_s].positive? }
          step_ms = (thread[:end_s] - thread[:start_s]) * 1000.0 / [stacks.size, 1].max
          times = stacks.each_index.map { |index| (thread[:start_s] * 1000.0 + step_ms * (index + 0.5)).round(4) }
          { stack: stacks.map { |stack| place(stack[:frames]) }, time: times,
            weight: stacks.map { |stack| (stack[:weight_s] * 1000.0).round(4) }, weightType: "tracing-ms",
            length: stacks.size }
        end

        # @return [Hash]
        def tables
          { stackTable: stack_table, frameTable: frame_table, funcTable: function_table,
            resourceTable: { length: 0, lib: [], name: [], host: [], type: [] },
            nativeSymbols: { libIndex: [], address: [], name: [], functionSize: [], length: 0 } }
        end

        private

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
