# frozen_string_literal: true

require "fileutils"

module Headway
  module Bench
    class Serving
      # The results as a Markdown file, with a picture beside it for each set of figures that is worth one.
      class Page
        DRAWN = %w[light_p99_us heavy_p99_us].freeze
        STYLE = "svg{font:12px system-ui,sans-serif;background:#fff}text{fill:#1b1f24}text.faint{fill:#5a6472;font-size:11px}" \
                ".rule{stroke:#d5d9df}.range{stroke:#1b1f24;stroke-width:1.5;opacity:.75}"
        COLOURS = %w[#7a8594 #c27803 #8a5cd1 #0f7b5f #1f6fc4 #b8376b #6b6b00].freeze
        private_constant :DRAWN, :STYLE, :COLOURS

        # @param path [String] of the Markdown file
        # @param command [String] that measured
        def initialize(path, command)
          @path = path
          @command = command
        end

        # @param results [Array<Array(Hash, Experiment)>]
        # @return [void]
        # @raise [Error]
        def write(results)
          FileUtils.mkdir_p(pictures)
          File.write(@path, "#{[head, *results.map { |result, experiment| section(result, experiment) }].join("\n\n")}\n")
        rescue SystemCallError => error
          raise Error, "cannot write #{@path}: #{error.message}"
        end

        private

        def pictures = @path.delete_suffix(".md")

        def head
          <<~MARKDOWN.chomp
            # A server under load

            Written by `#{@command}`. Requests arrive at random (Poisson) at a share of what stock Puma can take at most, whatever the
            server does; times count from the moment a request was to be sent. Light requests wait five times for 4 ms, as for a
            database, and compute for 5 ms in all; one request in ten is heavy and computes for 150 ms. *Light alone*: the same light
            requests without the heavy ones, on stock Ruby. Saturation: as many at once as keeps every thread busy (closed loop), until all
            are answered. All arms' servers run side by side and get their load by turns of some seconds, so that a machine whose speed
            swings does so for all alike; percentiles are of all turns of a run together. Each turn begins with an empty server, so that
            beyond 70 % queues stay shorter than in one long run, and after a full collection of its garbage. Servers keep as much in
            memory as a small Rails application, in heaps of one size. Sidekiq gets the same as jobs, from a Redis on this machine. In
            examples/rails_shop light is an item as JSON, three queries and a wait of 20 ms for another server; heavy is a picture drawn
            in Ruby.
          MARKDOWN
        end

        def section(result, experiment)
          [
            "## #{title(result)}", circumstances(result), table(result, experiment),
            *experiment.findings(result).map { "- #{_1}" }.join("\n"), *drawings(result, experiment)
          ].reject(&:empty?).join("\n\n")
        end

        def title(result)
          threads, workers = result["config"].values_at("threads", "workers")
          return "Sidekiq, #{threads} threads" if result["bench"] == "jobs"

          "#{"examples/rails_shop in " if result["bench"] == "shop"}Puma, #{threads} threads, #{workers} #{workers == 1 ? "worker" : "workers"}" \
            "#{", #{route(result["config"]["work_us"])}" if result["bench"] == "trivial"}"
        end

        def route(work_us) = work_us.zero? ? "a route that does nothing" : "a route that computes for #{work_us} µs"

        def circumstances(result)
          config = result["config"]
          ["Ruby #{result["ruby"]}, #{result["cpus"]} CPUs, Headway #{result["headway"]}",
           ("#{config["requests"]} requests a cell" if config["requests"]),
           ("capacity #{config["capacity_per_s"]} requests a second" if config["capacity_per_s"]),
           "#{config["runs"]} #{config["runs"] == 1 ? "run" : "runs: medians (lowest–highest)"}"].compact.join("; ")
        end

        def table(result, experiment)
          rows = Table.rows(result)
          figures = experiment.class.figures.select { |figure| rows.any? { _1.figures.fetch(figure.key)["median"] } }
          groups = rows.any?(&:group)
          lines = [[*(experiment.cell_title if groups), "arm", *figures.map(&:title)]]
          lines << lines.first.map { "---" }
          rows.each do |row|
            cells = figures.map { |figure| number(figure, row.figures.fetch(figure.key)) }
            lines << [*(row.group if groups), row.arm, *cells] unless cells.all?("–")
          end
          lines.map { "| #{_1.join(" | ")} |" }.join("\n")
        end

        def number(figure, value)
          median, low, high = value.values_at("median", "min", "max").map { figure.format(_1) }
          value["n"] > 1 ? "#{median} (#{low}–#{high})" : median
        end

        def drawings(result, experiment)
          experiment.class.figures.select { DRAWN.include?(_1.key) }.filter_map do |figure|
            chart = Chart.new(figure, Table.rows(result), group_title: experiment.cell_title)
            next if chart.empty?

            name = "#{result["bench"]}-#{result["config"].values_at("threads", "workers").join("x")}-#{figure.key.delete_suffix("_us")}.svg"
            File.write(File.join(pictures, name), standing_alone(chart.to_svg))
            "![#{figure.title}, #{chart.reading}](#{File.basename(pictures)}/#{name})"
          end
        end

        # The colours and fonts that the page of `headway bench` would give it.
        def standing_alone(svg)
          svg.sub("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" width="540" ').sub(/(?<=>)/, "<style>#{STYLE}</style>")
             .gsub(/var\(--c(\d)\)/) { COLOURS.fetch($1.to_i) }
        end
      end
    end
  end
end
