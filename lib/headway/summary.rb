# frozen_string_literal: true

require_relative "version"
require_relative "text_width"
require_relative "summary/table"
require_relative "summary/processor_time"
require_relative "summary/verdict"

module Headway
  # What `headway run --summary` prints: {Headway.stats} as text, for a person. It reads nothing but what it is given.
  class Summary
    # The rows that waited longest are the ones worth a line.
    MAX_ROWS = 20
    private_constant :MAX_ROWS

    # @param stats [Hash] as {Headway.stats} returns it
    # @param cpu_s [Float] seconds that the process has computed
    # @param gc_s [Float] seconds that collections took of that
    # @param quota [Hash, nil] how often a CPU quota was used up, as {Trace#to_h} has it of a process
    # @param notices [Array<String>] what is off, and why
    # @param pid [Integer]
    # @param program [String]
    # @param ruby [String] the Ruby's version
    # @param many_to_many [Boolean] whether threads share native threads
    def initialize(stats, cpu_s:, gc_s: 0.0, quota: nil, notices: [], many_to_many: false, pid: Process.pid, program: $PROGRAM_NAME, ruby: RUBY_VERSION)
      @stats = stats
      @process = stats.fetch(:process)
      @cpu_s = cpu_s
      @gc_s = gc_s
      @quota = quota
      @notices = notices
      @many_to_many = many_to_many
      @title = "process #{pid}, #{Text.cut(File.basename(program))}, Ruby #{ruby}"
    end

    # @param room [Integer, nil] columns of the terminal it is for; nil: as many as it takes
    # @return [String] lines, the last one ended
    def to_s(room: nil)
      [heading, *process_lines, "", *Table.new(shown, room: room).lines, *hidden, "",
       Verdict.new(@stats, @cpu_s, gc_s: @gc_s, quota: @quota, many_to_many: @many_to_many).to_s, *@notices.map { |notice| "Note: #{notice}" }].join("\n") << "\n"
    end

    private

    def heading
      quantum_ms = @stats[:quantum_ms]
      "\nHeadway #{VERSION}: #{@title}, policy #{@stats[:policy]}, " \
        "quantum #{quantum_ms && format("%g", quantum_ms)} ms, preempt #{@stats[:preempt]}"
    end

    def process_lines
      switches = @process[:switches]
      ["  #{Text.duration(@stats[:wall])} passed; over all threads: running #{Text.duration(@process[:running])}, " \
       "ready #{Text.duration(@process[:ready])}, suspended #{Text.duration(@process[:suspended])}",
       "  waits: #{spread(@process[:wait])}; holds: #{spread(@process[:hold])}",
       "  switches: #{switches[:voluntary]} voluntary, #{switches[:preempted]} preempted; " \
       "preemptions #{@process[:preemptions]}, parks #{@process[:parks]}, " \
       "timed-out parks #{@process[:park_timeouts]}, retries #{@process[:retries]}", *work_lines]
    end

    def work_lines
      @stats[:work].map do |kind, works|
        times = %i[running ready suspended].map { |state| "#{state} #{Text.duration(works[state])}" }
        "  #{kind}s: #{times.join(", ")}; waits in each: #{spread(works[:wait])}"
      end
    end

    def spread(figures)
      return "none" if figures[:count].zero?

      "#{figures[:count]}, p50 #{Text.duration(figures[:p50])}, p99 #{Text.duration(figures[:p99])}, " \
        "max #{Text.duration(figures[:max])}"
    end

    def shown
      @stats[:threads].sort_by { |row| -row[:ready] }.first(MAX_ROWS)
    end

    def hidden
      rest = @stats[:threads].size - MAX_ROWS
      rest.positive? ? ["  and #{rest} more that waited less"] : []
    end

    # Figures and names as they are written everywhere in a summary.
    module Text
      UNITS = [[1.0, "s"], [1e-3, "ms"], [1e-6, "µs"]].freeze
      STEERING = /[[:cntrl:]\u2028\u2029\u202a-\u202e\u2066-\u2069]/
      BYTES = [Encoding::BINARY, Encoding::US_ASCII].freeze
      # What a thread without a name is called: where it was created.
      SITE = %r{\A/.*/([^/]+/[^/]+:\d+)\z}
      private_constant :UNITS, :BYTES, :STEERING, :SITE

      class << self
        # @param seconds [Float, nil]
        # @return [String] three significant digits and a unit
        def duration(seconds)
          return "-" if seconds.nil?
          return "0" if seconds <= 0
          return "<1 µs" if seconds < 1e-6

          scale, unit = UNITS.find { |size, _| seconds >= size * 0.9995 } || UNITS.last
          value = seconds / scale
          "#{format("%.#{decimals(value)}f", value)} #{unit}"
        end

        # @param seconds [Float]
        # @return [String] how long something has been there, of which seconds soon tell nothing
        def age(seconds)
          return duration(seconds) if seconds < 100

          minutes = (seconds / 60).round
          minutes < 120 ? "#{minutes} min" : "#{minutes / 60} h #{minutes % 60} min"
        end

        # @return [String] a percentage; small ones keep a decimal
        def percent(fraction)
          value = fraction * 100
          format(value < 9.95 && value > 0 ? "%.1f %%" : "%.0f %%", value)
        end

        # Thread names come from the program: any bytes, any length.
        def cut(text, width = 40)
          TextWidth.cut(plain(text), width)
        end

        # @return [String] a thread's name; of a path what tells files apart
        def thread(text) = cut(plain(text).sub(SITE, '\1'))

        # Names, commands and files may be called anything: nothing of it may steer the terminal, end a line or turn it round. Bytes of
        # no encoding are taken for UTF-8, as they are where a locale is not set.
        #
        # @return [String] in UTF-8, without control characters
        def plain(text)
          text = text.to_s
          text = text.dup.force_encoding(Encoding::UTF_8) if BYTES.include?(text.encoding)
          text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace, replace: "?").scrub("?").gsub(STEERING, "?")
        end

        private

        def decimals(value)
          if value < 9.995 then 2
          elsif value < 99.95 then 1
          else 0
          end
        end
      end
    end
  end
end
