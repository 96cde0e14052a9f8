# frozen_string_literal: true

require "cgi/escape"
require_relative "../reason"
require_relative "chart"
require_relative "picture/part"

module Headway
  module Bench
    # A result as one HTML page: a chart for each figure and all the numbers, needing nothing from the network.
    class Picture
      # Fails now rather than after minutes of measuring.
      #
      # @param path [String]
      # @raise [UsageError] when nothing can be written there
      def self.check(path)
        existed = File.exist?(path)
        File.open(path, "a") { nil }
        File.delete(path) unless existed
      rescue SystemCallError => e
        raise UsageError, "cannot write #{path}: #{Reason.of(e)}"
      end

      STYLE = <<~CSS
        :root { color-scheme: light dark; --paper: #fff; --card: #f6f7f9; --ink: #1b1f24; --faint: #5a6472; --line: #d5d9df;
          --c0: #7a8594; --c1: #c27803; --c2: #8a5cd1; --c3: #0f7b5f; --c4: #1f6fc4; --c5: #b8376b; --c6: #6b6b00; }
        @media (prefers-color-scheme: dark) {
          :root { --paper: #14171b; --card: #1d2126; --ink: #e8eaed; --faint: #a3acb8; --line: #3a414a;
            --c0: #98a3b1; --c1: #e0a030; --c2: #b494ee; --c3: #35b98f; --c4: #5ba6f0; --c5: #ef7ba6; --c6: #bdbd4a; } }
        * { box-sizing: border-box; }
        body { margin: 0 auto; padding: 1rem; max-width: 80rem; background: var(--paper); color: var(--ink);
          font: 16px/1.45 system-ui, sans-serif; }
        h1 { font-size: 1.4rem; margin: 0 0 .25rem; } h2 { font-size: 1rem; margin: 0; } p + h1 { margin-top: 2.5rem; }
        p { margin: .25rem 0; } .faint { color: var(--faint); font-size: .875rem; }
        ul { padding-left: 1.2rem; } li { overflow-wrap: anywhere; }
        main { display: grid; gap: 1rem; margin: 1rem 0; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); }
        section { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem; }
        svg { display: block; width: 100%; max-width: 34rem; height: auto; font: 12px system-ui, sans-serif; }
        text { fill: var(--ink); } text.faint { fill: var(--faint); font-size: 11px; } .rule { stroke: var(--line); }
        .range { stroke: var(--ink); stroke-width: 1.5; opacity: .75; }
        .numbers { overflow-x: auto; }
        table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
        th, td { padding: .3rem .7rem .3rem 0; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
        th { color: var(--faint); font-weight: 600; vertical-align: bottom; } .word { text-align: left; }
        td small { display: block; color: var(--faint); font-size: .75rem; }
      CSS

      # @param results [Array<Array(Hash, Experiment)>] what is to be on the page
      def initialize(results)
        @parts = results.map { |result, experiment| Part.new(result, experiment) }
      end

      # @param path [String]
      def write(path)
        File.write(path, to_html)
      rescue SystemCallError => e
        raise Error, "cannot write #{path}: #{Reason.of(e)}"
      end

      # @return [String]
      def to_html
        <<~HTML
          <!doctype html>
          <html lang="en">
          <head>
          <meta charset="utf-8">
          <meta name="viewport" content="width=device-width, initial-scale=1">
          <title>headway bench #{@parts.map(&:name).join(", ")}</title>
          <style>
          #{STYLE}</style>
          </head>
          <body>
          #{@parts.map(&:to_html).join("\n")}
          </body>
          </html>
        HTML
      end
    end
  end
end
