# frozen_string_literal: true

module Headway
  module Report
    class Firefox
      # A thread's markers, column by column.
      class Markers
        INSTANT = 0
        INTERVAL = 1
        private_constant :INSTANT, :INTERVAL

        # How the viewer shows each type.
        SCHEMA = [
          { name: "Wait", display: %w[marker-chart marker-table timeline-overview], chartLabel: "{marker.data.holder}",
            tableLabel: "waited for {marker.data.holder}", tooltipLabel: "Wait for the GVL",
            data: [{ key: "holder", label: "Held by", format: "string", searchable: true },
                   { key: "holders", label: "One after the other", format: "string", searchable: true }] },
          { name: "GC", display: %w[marker-chart marker-table timeline-memory], tooltipLabel: "Garbage collection",
            data: [] },
          { name: "Mark", display: %w[marker-chart marker-table timeline-overview], chartLabel: "{marker.name}",
            tableLabel: "{marker.name}", data: [] }
        ].freeze

        # @param strings [Hash{String => Integer}] the thread's strings by their place, added to here
        def initialize(strings)
          @strings = strings
          @columns = { name: [], startTime: [], endTime: [], phase: [], category: [], data: [] }
        end

        # @param finish_ms [Float, nil] nil for an instant
        # @param data [Hash] its :type is the name of a schema
        def add(name, category, start_ms, finish_ms, data)
          @columns[:name] << (@strings[name] ||= @strings.size)
          @columns[:startTime] << start_ms
          @columns[:endTime] << finish_ms
          @columns[:phase] << (finish_ms ? INTERVAL : INSTANT)
          @columns[:category] << category
          @columns[:data] << data.compact
        end

        # @return [Hash]
        def to_h
          @columns.merge(length: @columns[:name].size)
        end
      end
    end
  end
end
