# frozen_string_literal: true

require "io/console"

module Headway
  module CLI
    module Top
      # The terminal while `headway top` has it: its size, its keys, and everything put back as it was, whatever happens.
      class Terminal
        ENTER = "\e[?1049h\e[?25l\e[?7l" # another screen, no cursor, no line wrapping
        LEAVE = "\e[?7h\e[?25h\e[?1049l"
        # A terminal that knows these shows a frame at once; the others pass over them.
        BEGIN_FRAME = "\e[?2026h\e[H"
        END_FRAME = "\e[?2026l"
        KEYS = { "\e[A" => :up, "\eOA" => :up, "k" => :up, "\e[B" => :down, "\eOB" => :down, "j" => :down,
                 "\e[5~" => :page_up, "\e[6~" => :page_down, "q" => :quit, "Q" => :quit, "\e" => :quit, "\x03" => :quit,
                 "+" => :longer, "=" => :longer, "-" => :shorter }.freeze
        # Keys that come quickly come together.
        SEQUENCE = /\e\[[\d;?]*[~A-Za-z]|\eO[A-Za-z]|./m
        STYLES = { title: "\e[1m", sorted: "\e[1;7m", running: "\e[32m", ready: "\e[33m" }.freeze
        private_constant :ENTER, :LEAVE, :BEGIN_FRAME, :END_FRAME, :KEYS, :SEQUENCE, :STYLES

        def initialize(output = $stdout, environment = ENV)
          @output = output
          @pending = []
          @colours = environment["NO_COLOR"].to_s.empty? && environment["TERM"] != "dumb"
        end

        # Takes the terminal for the time of the block.
        def take
          @input = $stdin.tty? ? $stdin : IO.console
          @awake, @waker = IO.pipe
          handlers = %w[WINCH TSTP CONT].to_h { |signal| [signal, trap(signal) { wake(signal) }] }
          enter
          yield
        ensure
          leave
          handlers&.each { |signal, handler| trap(signal, handler) }
          [@awake, @waker].each { |io| io&.close }
        end

        # @return [Array(Integer, Integer)] height and width
        def size
          height, width = @output.winsize
          height.zero? || width.zero? ? [24, 80] : [height, width]
        rescue SystemCallError
          [24, 80]
        end

        # @param lines [Array<String>]
        def draw(lines)
          height, = size
          # Erased before it is written: after a line that is as wide as the terminal, its last character would go.
          @output.write(BEGIN_FRAME, lines.first(height).map { |line| "\e[K#{line}" }.join("\r\n"), END_FRAME)
          @output.flush
        end

        # @return [Proc] for {Frame}
        def paint
          return ->(text, _style) { text } unless @colours

          ->(text, style) { STYLES[style] ? "#{STYLES[style]}#{text}\e[0m" : text }
        end

        # Waits for a key at the most so long.
        #
        # @return [Symbol, String, nil] a key's meaning, or its character; :resized; nil: nothing came
        def event(seconds)
          return @pending.shift if @pending.any?

          ready, = IO.select([@awake, @input].compact, nil, nil, [seconds, 0].max)
          return if ready.nil?
          return signalled if ready.include?(@awake)

          # Not read_nonblock: it would leave the terminal itself not blocking, for the shell too.
          @pending.concat(@input.readpartial(256).scan(SEQUENCE).map { |key| KEYS.fetch(key, key) })
          @pending.shift
        rescue Errno::EIO, EOFError
          :quit # the terminal is gone
        end

        private

        def enter
          @mode = @input&.console_mode
          @input&.raw!(intr: true)
          @output.write(ENTER)
          @output.flush
          @entered = true
        end

        def leave
          return unless @entered

          @entered = false
          @output.write("\e[0m", LEAVE)
          @output.flush
        rescue SystemCallError, IOError
          nil # the terminal is gone
        ensure
          restore_mode
        end

        def restore_mode
          @input.console_mode = @mode if @mode
          @mode = nil
        rescue SystemCallError, IOError
          nil
        end

        def wake(signal)
          @waker.write_nonblock(signal[0], exception: false)
        end

        # Ctrl-Z: the shell gets its terminal as it was, and `fg` gives it back to us.
        def signalled
          signals = @awake.read_nonblock(64)
          if signals.include?("T")
            leave
            Process.kill(:STOP, Process.pid)
            enter
          elsif signals.include?("C")
            leave
            enter
          end
          :resized
        end
      end
    end
  end
end
