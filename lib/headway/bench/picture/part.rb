# frozen_string_literal: true

module Headway
  module Bench
    class Picture
      # What the page says of one benchmark.
      class Part
        # @param result [Hash]
        # @param experiment [Experiment]
        def initialize(result, experiment)
          @result = result
          @experiment = experiment
          @rows = Table.rows(result)
          @figures = experiment.class.figures
        end

        # @return [String]
        def name = @result["bench"]

        # @return [String]
        def to_html
          <<~HTML
            <h1>#{name}: #{escape(@experiment.class.purpose)}</h1>
            <p class="faint">#{escape(circumstances)}</p>
            <ul>#{@experiment.findings(@result).map { "<li>#{escape(_1)}</li>" }.join}</ul>
            <main>
            #{charts.join("\n")}
            </main>
            <section class="numbers">
            <h2>All numbers</h2>
            #{table}
            </section>
            <p class="faint">#{escape(settings)}</p>
          HTML
        end

        private

        def circumstances
          runs = @result["config"]["runs"]
          "Ruby #{@result["ruby"]}, #{@result["cpus"]} CPUs, Headway #{@result["headway"]}; " +
            (runs == 1 ? "one run" : "medians of #{runs} runs, lines from the lowest to the highest")
        end

        def settings
          @result["config"].map { |key, value| "#{key}: #{Array(value).map { setting(_1) }.join(", ")}" }.join(" · ")
        end

        def setting(value) = value.is_a?(Float) ? format("%g", value) : value

        def charts
          @figures.filter_map do |figure|
            chart = Chart.new(figure, @rows, group_title: @experiment.cell_title)
            next if chart.empty?

            "<section>\n<h2>#{escape(figure.title)}</h2>\n<p class=\"faint\">#{chart.reading}</p>\n#{chart.to_svg}\n</section>"
          end
        end

        def table
          groups = @rows.any?(&:group)
          words = [*(@experiment.cell_title if groups), "arm"].map { "<th class=\"word\">#{escape(_1)}</th>" }
          head = words + @figures.map { "<th>#{_1.key}</th>" }
          body = @rows.map do |row|
            words = [*(row.group if groups), row.arm].map { "<td class=\"word\">#{escape(_1)}</td>" }
            "<tr>#{(words + @figures.map { number(_1, row.figures.fetch(_1.key)) }).join}</tr>"
          end
          "<table>\n<thead><tr>#{head.join}</tr></thead>\n<tbody>\n#{body.join("\n")}\n</tbody>\n</table>"
        end

        def number(figure, value)
          median, low, high = value.values_at("median", "min", "max").map { figure.format(_1) }
          range = "<small>#{low}–#{high}</small>" if value["n"] > 1
          "<td>#{median}#{range}</td>"
        end

        def escape(text) = CGI.escapeHTML(text.to_s)
      end
    end
  end
end
