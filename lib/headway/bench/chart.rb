# frozen_string_literal: true

require "cgi/escape"

module Headway
  module Bench
    # One figure drawn as SVG: a bar for each arm, group under group; on a logarithmic scale dots, since the length of a bar
    # would mean nothing there.
    class Chart
      WIDTH = 360
      LEFT = 92
      RIGHT = 66
      BAR = 14
      STEP = 20
      TITLE = 18
      AXIS = 20

      # @param figure [Figure]
      # @param rows [Array<Table::Row>]
      # @param group_title [String] what a group is a number of
      def initialize(figure, rows, group_title: "")
        @figure = figure
        @rows = rows.select { value(_1)["median"] }
        @group_title = group_title
        @low, @high = bounds unless empty?
      end

      # @return [Boolean] nobody measured this figure
      def empty? = @rows.empty?

      # @return [String] how to read it
      def reading
        better = { lower: "lower is better", higher: "higher is better", neither: nil }.fetch(@figure.better)
        unit = { "s" => "seconds", "/s" => nil, "%" => "percent", "µs" => "logarithmic scale", "×" => "times" }.fetch(@figure.unit)
        [unit, better].compact.join(", ")
      end

      # @return [String]
      def to_svg
        y = 0
        parts = @rows.group_by(&:group).map do |group, rows|
          head = group ? %(<text class="faint" x="0" y="#{(y += TITLE) - 5}">#{escape(title(group))}</text>) : ""
          head + rows.map { |row| line(row, (y += STEP) - STEP) }.join
        end
        label = CGI.escapeHTML("#{@figure.title} by arm")
        %(<svg viewBox="0 0 #{WIDTH} #{y + AXIS}" role="img" aria-label="#{label}">#{grid(y)}#{parts.join}</svg>)
      end

      private

      def title(group) = group == "1" ? "1 #{@group_title.delete_suffix("s")}" : "#{group} #{@group_title}".strip

      def value(row) = row.figures.fetch(@figure.key)

      def log? = @figure.scale == :log

      # From 0, or below where a figure is negative; decades on a logarithmic scale.
      def bounds
        values = @rows.flat_map { value(_1).values_at("min", "max") }
        return [[0, values.min].min, [values.max, 1e-9].max] unless log?

        [10**Math.log10([values.min, 0.1].max).floor, 10**Math.log10([values.max, 1].max).ceil]
      end

      def x(number)
        share = log? ? log_share(number) : (number - @low) / (@high - @low).to_f
        (LEFT + (share * (WIDTH - LEFT - RIGHT))).round(1)
      end

      def log_share(number) = (Math.log10([number, @low].max) - Math.log10(@low)) / Math.log10(@high / @low.to_f)

      def line(row, y)
        median, low, high = value(row).values_at("median", "min", "max")
        middle = y + (STEP / 2)
        [
          %(<text x="0" y="#{middle + 4}">#{escape(row.arm)}</text>),
          mark(row, median, middle),
          *(%(<path class="range" d="M#{x(low)} #{middle}H#{x(high)}"/>) if high > low),
          %(<text x="#{[x(high), x(median) + (log? ? 5 : 0)].max + 6}" y="#{middle + 4}">#{@figure.format(median)}</text>)
        ].join
      end

      def mark(row, median, middle)
        colour = "var(--c#{(Arm::KINDS.keys.index(row.arm) || Arm::KINDS.size) % 7})"
        return %(<circle cx="#{x(median)}" cy="#{middle}" r="5" fill="#{colour}"/>) if log?

        from, to = [x(0), x(median)].minmax
        width = [(to - from).round(1), 1].max
        %(<rect x="#{from}" y="#{middle - (BAR / 2)}" width="#{width}" height="#{BAR}" rx="2" fill="#{colour}"/>)
      end

      def grid(height)
        ticks.map do |number|
          %(<path class="rule" d="M#{x(number)} 0V#{height}"/>) +
            %(<text class="faint" text-anchor="middle" x="#{x(number)}" y="#{height + 14}">#{tick(number)}</text>)
        end.join
      end

      # Marks stand at round numbers: no zeros after the point.
      def tick(number) = @figure.format(number).sub(/\.(\d*?)0+(?=\D|\z)/) { $1.empty? ? "" : ".#{$1}" }

      # A handful of marks: every decade or every other, or the round steps that fit.
      def ticks
        return decades if log?

        step = [1, 2, 5, 10].map { _1 * (10**Math.log10((@high - @low) / 3.0).floor) }.find { (@high - @low) / _1 <= 4 }
        first = (@low / step.to_f).ceil
        (first..(@high / step).floor).map { _1 * step }
      end

      def decades
        exponents = (Math.log10(@low).round..Math.log10(@high).round).to_a
        exponents.each_slice((exponents.size / 4.0).ceil).map { 10.0**_1.first }
      end

      def escape(text) = CGI.escapeHTML(text)
    end
  end
end
