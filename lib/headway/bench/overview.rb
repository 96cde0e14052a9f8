# frozen_string_literal: true

require "etc"
require_relative "../base"
require_relative "../bench"

module Headway
  module Bench
    # All figures that the project promises, measured one after another and put into one table. This is `bin/bench`.
    class Overview
      COLUMNS = %w[stock signal poll].freeze
      TITLES = { "stock" => "stock", "signal" => "Headway, signal", "poll" => "Headway, poll" }.freeze
      ARMS = { "stock" => "stock", "signal" => "headway", "poll" => "headway-poll" }.freeze

      # How long to measure: what is to be quoted, and what shows within minutes that everything works.
      Scale = Data.define(:runs, :iterations, :seconds, :blocks, :window_s, :slice_s)
      FULL = Scale.new(runs: 5, iterations: 100, seconds: 5, blocks: 15, window_s: 0.6, slice_s: 4)
      QUICK = Scale.new(runs: 1, iterations: 20, seconds: 1.5, blocks: 3, window_s: 0.3, slice_s: 0.8)

      # One line of the table.
      #
      # @!attribute figure [String] what was measured
      # @!attribute goal [String]
      # @!attribute ruby [String] under which Ruby
      # @!attribute cells [Hash{String => Cell}] by {COLUMNS}
      Row = Data.define(:figure, :goal, :ruby, :cells)

      # @param interpreters [Array<Interpreter>]
      # @param scale [Scale]
      # @param only [Array<String>] names of sections, all when empty
      def initialize(interpreters, scale: FULL, only: [], progress: Progress)
        unknown = only - SECTIONS.keys
        raise UsageError, "unknown section #{unknown.first.inspect}: give any of #{SECTIONS.keys.join(", ")}" if unknown.any?

        @interpreters = interpreters
        @scale = scale
        @sections = only.empty? ? SECTIONS : SECTIONS.slice(*only)
        @progress = progress
      end

      # Measures everything.
      #
      # @return [Overview] itself
      def call
        @floor = Native.floor
        rows = @sections.values.flat_map do |section|
          @interpreters.flat_map { |interpreter| section.new(interpreter, @scale, @progress).rows }
        end
        @rows = rows.group_by(&:figure).values.flatten
        self
      end

      # @return [Hash] the documented, versioned form
      def to_h
        {
          "headway" => VERSION, "schema" => Result::SCHEMA, "bench" => "overview", "cpus" => Etc.nprocessors,
          "config" => @scale.to_h.transform_keys(&:to_s),
          "floor" => @floor && { "signal_us" => (@floor.first * 1e6).round(1), "wake_us" => (@floor.last * 1e6).round(1) },
          "rows" => @rows.map do |row|
            { "figure" => row.figure, "goal" => row.goal, "ruby" => row.ruby, "cells" => row.cells.transform_values(&:to_h) }
          end
        }
      end

      # @return [String]
      def to_markdown
        head = ["", "goal", "Ruby", *TITLES.values]
        lines = @rows.map { |row| [row.figure, row.goal, row.ruby, *COLUMNS.map { row.cells[_1]&.to_s || "–" }] }
        [head, head.map { "---" }, *lines].map { "| #{_1.join(" | ")} |" }.push("", *floor_line).join("\n")
      end

      private

      # No figure of a wait can be better than what the machine needs for a forced switch.
      def floor_line
        return [] unless @floor

        [format("On this machine a signal to another core takes %.0f µs and waking a thread %.0f µs (medians of 150).",
                *@floor.map { |seconds| seconds * 1e6 })]
      end
    end
  end
end

require_relative "overview/cell"
require_relative "overview/section"
require_relative "overview/waste"
require_relative "overview/requests"
require_relative "overview/throughput"
require_relative "overview/idle_cost"
require_relative "overview/slices"

module Headway
  module Bench
    class Overview
      SECTIONS = {
        "waste" => Waste, "requests" => Requests, "throughput" => Throughput, "idle" => IdleCost, "slices" => Slices
      }.freeze
    end
  end
end
