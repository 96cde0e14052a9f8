# frozen_string_literal: true

require_relative "columns"
require_relative "../../text_width"

module Headway
  module CLI
    module Top
      # One picture of a process: lines of text, no wider than asked for.
      class Frame
        PLAIN = ->(text, _style) { text }
        SINCE = "since Headway started"
        # Of the waiting: who sees so much needn't say how much that is.
        NEARLY_ALL = 0.9
        private_constant :PLAIN, :SINCE, :NEARLY_ALL

        # @param sample [Sample]
        # @param sort [Symbol]
        # @param command [String, nil] the process's command line, if it can be seen from outside
        # @param paint [Proc] takes a text and a style (:title, :sorted, :running, :ready), gives what is printed
        def initialize(sample, sort:, command: nil, paint: PLAIN)
          @sample = sample
          @stats = sample.stats
          @sort = sort
          @command = command || @stats[:command]
          @paint = paint
        end

        # @param width [Integer, nil] columns; nil: no limit
        # @param height [Integer, nil] lines; nil: no limit
        # @param skip [Integer] threads scrolled past
        # @return [Array<String>]
        def lines(width: nil, height: nil, skip: 0)
          head = heading.map { |line| width ? TextWidth.cut(line, width) : line }
          columns = Columns.fitting(width)
          name_width = name_width(columns, width)
          body = rows.drop(skip).map { |row| table_row(row, columns, name_width) }
          head.push("", title_row(columns, name_width, width), *fit_height(body, height && height - head.size - 2))
        end

        # @return [Integer] threads there are to scroll through
        def size = rows.size

        private

        def heading
          [first_line, settings_line, gvl_line, *works_line, *waits_line, spread_line, *blame_line].map { |line| Summary::Text.plain(line) }
        end

        def first_line
          "Headway #{@stats[:headway]}, process #{@stats[:pid]}, Ruby #{@stats[:ruby]}, for #{Summary::Text.age(@stats[:wall])}: #{@command}"
        end

        def settings_line
          left_out = @stats[:threads_left_out].to_i # the answer has no room for more
          missing = ", of which the youngest #{left_out} are not shown" if left_out.positive?
          "policy #{@stats[:policy]}, quantum #{format("%g", @stats[:quantum_ms])} ms, preempt #{@stats[:preempt]}; " \
            "#{count = @stats[:process][:threads]} #{count == 1 ? "thread" : "threads"}#{missing}"
        end

        def gvl_line
          format("%s: GVL held %.0f %% of the time, %.2f threads waiting for it, %.0f switches/s, %.0f of them preemptions",
                 @sample.interval? ? span : SINCE, [@sample.running * 100, 100].min, @sample.waiting, @sample.switches, @sample.preempted)
        end

        def works_line
          works = @sample.works.map do |kind, sums|
            format("%s %ss/s, which waited for the GVL for %.0f %% of their time", per_second(sums[:per_s]), kind, 100 * sums[:waited])
          end
          works.empty? ? [] : ["#{@sample.interval? ? span : SINCE}: #{works.join("; ")}"]
        end

        # Never with an exponent, as 1.2e+03.
        def per_second(rate)
          return "<0.001" if rate < 0.001

          format(rate >= 100 ? "%.0f" : "%.3g", rate)
        end

        def span = "in #{Summary::Text.duration(@sample.seconds)}"

        def waits_line
          return [] unless @sample.interval?

          waits = @sample.waits
          ["#{span}: #{waits[:count]} #{waits[:count] == 1 ? "wait" : "waits"}#{", #{spread(waits)}" if waits[:count].positive?}"]
        end

        def spread_line
          waits, holds = @stats[:process].values_at(:wait, :hold).map { |figures| spread(figures) }
          "#{SINCE}#{", as in the table" if @sample.interval?}: waits #{waits}; holds #{holds}"
        end

        def spread(figures)
          return "none" if figures[:count].zero?

          %i[p50 p99 max].map { |part| "#{part} #{Summary::Text.duration(figures[part])}" }.join(" ")
        end

        # The line of code behind which threads waited most; nothing where that is all stacks that found no room of their own.
        def blame_line
          blame = @stats[:blame]
          weight, method, file, line = blame[:lines].first&.values_at(:weight, :method, :file, :line)
          return [] if method.nil?

          place = " at #{file}:#{line}" if line.positive?
          [format("#{SINCE}: %.0f %% of the waiting behind %s", weight * 100 / blame[:weight], "#{method}#{place}#{seen(blame[:weight])}")]
        end

        # Holds of a few milliseconds are seldom seen, and the GVL that is free has no holder: of little that was seen little follows.
        def seen(weight)
          ready = @stats[:process][:ready]
          ", as far as it was seen: #{Summary::Text.duration(weight)} of #{Summary::Text.duration(ready)}" if weight < NEARLY_ALL * ready
        end

        def rows
          @rows ||= Columns.sorted(@sample.rows, @sort)
        end

        def name_width(columns, width)
          longest = [*rows.map { |row| TextWidth.of(Summary::Text.plain(row.name)) }, Columns::NAME.title.length].max
          [longest, Columns::MAX_NAME, *(Columns.room_for_name(columns, width) if width)].min.clamp(1..)
        end

        def title_row(columns, name_width, width)
          cells = [title_cell(Columns::NAME, TextWidth.fit(Columns::NAME.title, name_width)),
                   *columns.map { |column| title_cell(column, column.title.rjust(column.width)) }]
          width && width < name_width ? "" : cells.join(" " * Columns::GAP)
        end

        def title_cell(column, text)
          @paint[text, Columns::SORTS[@sort].equal?(column) ? :sorted : :title]
        end

        def table_row(row, columns, name_width)
          name = TextWidth.fit(Summary::Text.plain(row.name), name_width)
          cells = columns.map do |column|
            text = column.text[row].rjust(column.width)
            column.title == "STATE" ? @paint[text, row.state.to_s.to_sym] : text
          end
          [name, *cells].join(" " * Columns::GAP)
        end

        def fit_height(body, height)
          return body if height.nil? || body.size <= height
          return [] if height < 1

          body.first(height - 1) << "(#{body.size - height + 1} more)"
        end
      end
    end
  end
end
