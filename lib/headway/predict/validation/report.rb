# frozen_string_literal: true

require "etc"
require_relative "../validation"

module Headway
  module Predict
    class Validation
      # What a validation found, as docs/validation.md and the plot beside it: every cell, those that miss too.
      class Report
        TITLES = { "requests_per_s" => "requests/s", "mean_ms" => "mean", "p50_ms" => "p50", "p99_ms" => "p99" }.freeze
        SORTS = { same: "the setting recorded", unseen: "other threads, processes or quantum", policy: "another policy" }.freeze
        SIDE = 420
        MARGIN = 52
        COLOURS = { same: "#0f7b5f", unseen: "#1f6fc4", policy: "#c27803" }.freeze
        private_constant :TITLES, :SORTS, :SIDE, :MARGIN, :COLOURS

        # @param validation [Validation] done
        # @param command [String] that made it
        def initialize(validation, command)
          @validation = validation
          @cells = validation.cells
          @command = command
        end

        # @return [String]
        def to_markdown
          <<~MARKDOWN
            # How near predictions come

            Written by `#{@command}`; run it to see for yourself. One trace was recorded of one setting (#{BASE}), everything below predicted
            from it and written down (SHA-256 of the predictions: `#{@validation.digest[0, 16]}`), and only then measured: Ruby #{RUBY_VERSION},
            #{Etc.nprocessors} CPUs, #{@validation.runs == 1 ? "one run" : "medians of #{@validation.runs} interleaved runs"} of #{Predict.number(@validation.seconds)} s a setting.
            The program is `lib/headway/predict/validation/program.rb`: closed, 96 % light requests, 4 % heavy ones.

            The recorded setting itself, measured again between the others, did #{drift}: no error below can be told from
            noise of that size.

            ![predicted against measured](validation.svg)

            ## In short

            #{summary}

            Regret, how far the setting predicted to do most stays behind the one that did most: #{format("%.1f", @validation.regret)} % (allowed: 5 %).

            ## Every setting

            Errors are signed, predicted over measured, in per cent; **bold** ones are beyond what is allowed. Amdahl's law, which other advisers
            print, knows neither waiting nor policy; its error is that of requests a second.

            #{table}
          MARKDOWN
        end

        # @return [String] an SVG: requests a second and p99, predicted against measured, on logarithmic scales
        def to_svg
          panels = { "requests_per_s" => "requests a second", "p99_ms" => "p99 in milliseconds" }.each_with_index.map do |(key, title), i|
            "<g transform=\"translate(#{i * (SIDE + 20)},0)\">#{panel(key, title)}</g>"
          end
          keys = COLOURS.each_with_index.map do |(sort, colour), i|
            "<circle cx=\"#{MARGIN + 8 + (i * 250)}\" cy=\"#{SIDE + 20}\" r=\"5\" fill=\"#{colour}\"/><text x=\"#{MARGIN + 20 + (i * 250)}\" y=\"#{SIDE + 24}\">#{SORTS[sort]}</text>"
          end
          <<~SVG
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{(2 * SIDE) + 20} #{SIDE + 40}" role="img" aria-label="predicted against measured">
            <style>svg { background: #fff; font: 12px system-ui, sans-serif } text { fill: #1b1f24 } .rule { stroke: #d5d9df; fill: none }</style>
            #{panels.join("\n")}
            #{keys.join("\n")}
            </svg>
          SVG
        end

        private

        def drift
          rates = @validation.base_rates
          "#{rates.min.round(1)} to #{rates.max.round(1)} requests a second (#{rates.size} times)"
        end

        def summary
          lines = SORTS.filter_map do |sort, words|
            cells = @cells.select { |cell| cell.sort == sort && cell.predicted }
            next if cells.empty?

            LIMITS.fetch(sort).map do |key, limit|
              errors = cells.filter_map { |cell| cell.error(key) }
              next if errors.empty?

              within = errors.count { |error| error.abs <= limit }
              "| #{words} | #{TITLES[key]} | #{limit} % | #{within} of #{errors.size} | #{format("%+.1f", errors.sort[errors.size / 2])} % | #{format("%.1f", errors.map(&:abs).max)} % |"
            end
          end
          amdahl = @cells.map { |cell| cell.amdahl_error.abs }.sort
          ["| predicted | figure | allowed | within | median error | worst |", "|---|---|---|---|---|---|", *lines.flatten.compact,
           "| Amdahl's law, all settings | requests/s | | | #{format("%.1f", amdahl[amdahl.size / 2])} % (absolute) | #{format("%.1f", amdahl.last)} % |"].join("\n")
        end

        def table
          head = "| processes × threads | policy | quantum | measured requests/s (range) | mean, p50, p99 ms | error requests/s | mean | p50 | p99 | Amdahl |"
          rows = @cells.map do |cell|
            setting, measured = cell.setting, cell.measured
            what = "| #{setting.processes} × #{setting.threads} | #{setting.policy} | #{Predict.number(setting.quantum_ms)} " \
                   "| #{measured["requests_per_s"].round(1)} (#{cell.spread.map { |rate| rate.round(1) }.join("–")}) " \
                   "| #{measured.values_at("mean_ms", "p50_ms", "p99_ms").map { |ms| ms.round(1) }.join(", ")} "
            errors = cell.refusal ? "| refused: #{cell.refusal} | | | " : KEYS.map { |key| "| #{error(cell, key)} " }.join
            "#{what}#{errors}| #{format("%+.1f", cell.amdahl_error)} |"
          end
          [head, "|#{"---|" * 10}", *rows].join("\n")
        end

        def error(cell, key)
          error = cell.error(key) or return "–"
          text = format("%+.1f", error)
          cell.within?(key) == false ? "**#{text}**" : text
        end

        def panel(key, title)
          points = @cells.filter_map { |cell| [cell.measured[key], cell.predicted[key], cell] if cell.predicted&.fetch(key) }
          return "" if points.empty?

          low, high = points.flat_map { |measured, predicted, _| [measured, predicted] }.minmax.then { |a, b| [a * 0.8, b * 1.25] }
          place = ->(value) { (Math.log(value / low) / Math.log(high / low) * (SIDE - (2 * MARGIN))).round(1) }
          dots = points.map do |measured, predicted, cell|
            "<circle cx=\"#{MARGIN + place[measured]}\" cy=\"#{SIDE - MARGIN - place[predicted]}\" r=\"4\" fill=\"#{COLOURS[cell.sort]}\" fill-opacity=\"0.8\">" \
              "<title>#{cell.setting}: #{measured.round(1)} measured, #{predicted.round(1)} predicted</title></circle>"
          end
          frame(title, low, high) + dots.join
        end

        def frame(title, low, high)
          right = SIDE - MARGIN
          "<path class=\"rule\" d=\"M#{MARGIN} #{MARGIN}V#{right}H#{right}\"/><path class=\"rule\" d=\"M#{MARGIN} #{right}L#{right} #{MARGIN}\"/>" \
            "<text x=\"#{MARGIN}\" y=\"30\" font-size=\"14\">#{title}</text>" \
            "<text x=\"#{SIDE / 2}\" y=\"#{SIDE - 12}\" text-anchor=\"middle\">measured</text>" \
            "<text x=\"14\" y=\"#{SIDE / 2}\" transform=\"rotate(-90 14 #{SIDE / 2})\" text-anchor=\"middle\">predicted</text>" +
            [[low, MARGIN], [high, right]].map { |value, at| "<text x=\"#{at}\" y=\"#{right + 16}\" text-anchor=\"middle\">#{value.round}</text>" }.join
        end
      end
    end
  end
end
