# frozen_string_literal: true

require "cgi/escape"
require_relative "../predict"
require_relative "../report"

module Headway
  module Predict
    # Latency against load: for each setting a line of the p99 (of few requests the p95) and, dashed, of the p50, over rates of open
    # arrivals up to what it can do. One SVG file that needs nothing else.
    class Plot
      LINES_MOST = 8
      LOADS = [0.05, 0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95].freeze
      WIDTH = 860
      HEIGHT = 460
      LEFT = 64
      RIGHT = 250
      TOP = 40
      BOTTOM = 44
      COLOURS = %w[#1f6fc4 #c27803 #0f7b5f #b8376b #8a5cd1 #6b6b00 #7a8594 #14828c].freeze
      Line = Data.define(:setting, :points)
      Point = Data.define(:rate, :p50_ms, :tail_ms)
      private_constant :LINES_MOST, :LOADS, :WIDTH, :HEIGHT, :LEFT, :RIGHT, :TOP, :BOTTOM, :COLOURS

      # @param workload [Workload]
      # @param settings [Array<Setting>] their rates don't matter; the first eight are drawn
      # @param options [Hash] for {Figures}
      def initialize(workload, settings, **options)
        @workload = workload
        @options = options
        @tail = workload.count < Figures::LEAST.fetch("p99_ms") ? "p95" : "p99"
        grounds = Grounds.new(workload)
        settings = settings.map { |setting| setting.with(rate: nil) }.uniq.reject { |setting| grounds.refusal_of(setting) }
        @left_out = [settings.size - LINES_MOST, 0].max
        @lines = settings.first(LINES_MOST).map { |setting| line(setting) }.reject { |line| line.points.empty? }
      end

      # @param path [String]
      # @raise [Report::Error]
      def write(path)
        svg = to_svg
        Report.write_file(path) { |file| file.write(svg) }
      end

      # @return [String]
      def to_svg
        return empty if @lines.empty?

        points = @lines.flat_map(&:points)
        @most_rate = points.map(&:rate).max
        @decades = (Math.log10(points.map(&:p50_ms).min).floor..Math.log10(points.map(&:tail_ms).max).ceil)
        drawn = @lines.each_with_index.map { |line, i| draw(line, COLOURS[i], i) }
        frame((grid + drawn).join("\n"))
      end

      private

      def line(setting)
        busy = figures(setting)
        points = busy.refusal ? [] : LOADS.filter_map { |load| point(setting.with(rate: busy.requests_per_s * load)) }
        Line.new(setting:, points:)
      end

      def point(setting)
        figures = figures(setting)
        return if figures.refusal

        p50, tail = ["p50_ms", "#{@tail}_ms"].map { |key| figures.samples(key).first }
        Point.new(rate: setting.rate, p50_ms: [p50, 0.001].max, tail_ms: [tail, 0.001].max) if p50 && tail
      end

      def figures(setting) = Figures.new(@workload, setting, replications: 0, **@options)

      def x(rate) = (LEFT + (rate / @most_rate * (WIDTH - LEFT - RIGHT))).round(1)

      def y(ms)
        share = (Math.log10(ms) - @decades.begin) / [@decades.end - @decades.begin, 1].max
        (HEIGHT - BOTTOM - (share * (HEIGHT - TOP - BOTTOM))).round(1)
      end

      def draw(line, colour, place)
        paths = { tail_ms: "", p50_ms: %( stroke-dasharray="4 4") }.map do |key, dashes|
          points = line.points.map { |point| "#{x(point.rate)} #{y(point.public_send(key))}" }
          %(<path d="M#{points.join("L")}" fill="none" stroke="#{colour}" stroke-width="2"#{dashes}/>)
        end
        height = TOP + 14 + (place * 22)
        "#{paths.join}\n#{key(place, x(line.points.last.rate) - 3, y(line.points.last.tail_ms) - 5, "end")}" \
          "<path d=\"M#{WIDTH - RIGHT + 16} #{height - 4}h18\" stroke=\"#{colour}\" stroke-width=\"3\"/>" \
          "#{key(place, WIDTH - RIGHT + 40, height, "start")}<text x=\"#{WIDTH - RIGHT + 56}\" y=\"#{height}\">#{CGI.escapeHTML(line.setting.to_s)}</text>"
      end

      # At the line's end and in the list: not everybody sees eight colours apart.
      def key(place, left, top, anchor) = %(<text x="#{left}" y="#{top}" text-anchor="#{anchor}" font-weight="600">#{place + 1}</text>)

      def grid
        lines = @decades.map { |power| rule("M#{LEFT} #{y(10.0**power)}H#{WIDTH - RIGHT}", LEFT - 8, y(10.0**power) + 4, "end", Predict.number(10.0**power)) }
        lines + (0..4).map do |quarter|
          rate = @most_rate * quarter / 4
          rule("M#{x(rate)} #{TOP}V#{HEIGHT - BOTTOM}", x(rate), HEIGHT - BOTTOM + 18, "middle", Predict.number(rate.round(rate < 20 ? 1 : 0)))
        end
      end

      def rule(path, left, top, anchor, text)
        %(<path class="rule" d="#{path}"/><text x="#{left}" y="#{top}" text-anchor="#{anchor}">#{text}</text>)
      end

      def frame(content)
        more = @left_out.positive? ? "; #{@left_out} more settings are not drawn" : ""
        <<~SVG
          <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{WIDTH} #{HEIGHT}" role="img" aria-label="latency against load">
          <style>svg { background: #fff; font: 12px system-ui, sans-serif } text { fill: #1b1f24 } .rule { stroke: #d5d9df; stroke-width: 1 }</style>
          <text x="#{LEFT}" y="22" font-size="14">Predicted latency against load: #{@tail}, and p50 dashed (milliseconds)#{more}</text>
          #{content}
          <text x="#{(LEFT + WIDTH - RIGHT) / 2}" y="#{HEIGHT - 8}" text-anchor="middle">#{@workload.things} a second</text>
          </svg>
        SVG
      end

      def empty = frame("<text x=\"#{LEFT}\" y=\"#{TOP + 30}\">no setting could be predicted</text>")
    end
  end
end
