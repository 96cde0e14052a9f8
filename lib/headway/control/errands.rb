# frozen_string_literal: true

module Headway
  module Control
    # What the control socket's native thread needs Ruby for. Called by the extension, on a Ruby thread that lives for just
    # that, when somebody asks for statistics or a dump.
    module Errands
      THREAD_NAME = "headway control"
      # Of what the recorder tells, so much is passed on.
      MAX_LINES = 20
      MAX_LENGTH = 200
      private_constant :THREAD_NAME, :MAX_LINES, :MAX_LENGTH

      class << self
        # Tells the extension the names of all threads.
        #
        # @return [void]
        def tell_names
          Thread.list.each { |thread| Native.control_name(thread, Stats.name_of(thread)) }
        end

        # The errand: on a thread of its own.
        #
        # @return [String] further members of the statistics as JSON, with a comma before each
        def names
          Thread.current.name = THREAD_NAME
          tell_names
          members("blame" => blame, "notices" => Headway.notices)
        end

        # @param path [String] absolute; empty: the recorder's default
        # @return [Array(Boolean, String)] whether it worked; the file's path, or what went wrong
        def dump(path)
          return [false, "nothing is being recorded in this process"] unless recording?

          [true, (path.empty? ? Recorder.dump : Recorder.dump(path)).to_s]
        rescue StandardError => error
          [false, error.message.lines.first.to_s.chomp]
        end

        private

        def recording?
          defined?(Headway::Recorder) && Headway::Recorder.recording?
        end

        # The heaviest stacks of holders, if the recorder keeps any: "SHARE % METHOD FILE:LINE", of the innermost frame.
        def blame
          return [] unless Stats.respond_to?(:blame)

          blame = Stats.blame(MAX_LINES)
          blame[:stacks].map do |stack|
            frame = stack[:frames].first || {}
            share = blame[:weight].positive? ? stack[:weight] * 100.0 / blame[:weight] : 0
            format("%.0f %% %s %s:%s", share, *frame.values_at(:method, :file, :line))
          end
        end

        # Written by hand, because the program may not want json loaded.
        def members(lists)
          lists.map do |name, lines|
            strings = lines.first(MAX_LINES).map { |line| quote(line.to_s) }
            ",\"#{name}\":[#{strings.join(",")}]"
          end.join
        end

        def quote(text)
          clean = text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub("?")[0, MAX_LENGTH]
          "\"#{clean.gsub(/["\\[:cntrl:]]/) { |character| format("\\u%04x", character.ord) }}\""
        end
      end
    end
  end
end
