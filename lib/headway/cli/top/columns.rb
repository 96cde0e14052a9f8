# frozen_string_literal: true

module Headway
  module CLI
    module Top
      # The table of threads: what is in its columns, how it is sorted, and which columns a narrow terminal shows.
      module Columns
        Column = Struct.new(:title, :width, :key, :need, :text, :order, keyword_init: true)

        time = ->(name) { ->(row) { Summary::Text.duration(row[name]) } }
        share = ->(name) { ->(row) { format("%.1f", row[name] * 100) } }
        falling = ->(name) { ->(row) { -(row[name] || -1) } }
        name_order = ->(row) { row.name.to_s }

        # need: the columns with the highest go first when there is no room.
        ALL = [
          Column.new(title: "STATE", width: 9, key: "s", need: 2, text: ->(row) { row.state.to_s },
                     order: ->(row) { %w[running ready suspended].index(row.state) || 3 }),
          Column.new(title: "RUN %", width: 6, key: "r", need: 1, text: share[:run], order: falling[:run]),
          Column.new(title: "WAIT %", width: 6, key: "w", need: 0, text: share[:wait], order: falling[:wait]),
          Column.new(title: "WAIT P50", width: 8, key: "5", need: 6, text: time[:wait_p50], order: falling[:wait_p50]),
          Column.new(title: "WAIT P99", width: 8, key: "9", need: 3, text: time[:wait_p99], order: falling[:wait_p99]),
          Column.new(title: "HOLD P50", width: 8, key: "6", need: 7, text: time[:hold_p50], order: falling[:hold_p50]),
          Column.new(title: "HOLD P99", width: 8, key: "h", need: 4, text: time[:hold_p99], order: falling[:hold_p99]),
          Column.new(title: "PREEMPT/S", width: 9, key: "p", need: 5, order: falling[:preempted],
                     text: ->(row) { format("%.1f", row.preempted) }),
          Column.new(title: "CLASS", width: 11, key: nil, need: 8,
                     text: ->(row) { row.batch ? "batch" : "interactive" }, order: nil)
        ].freeze
        NAME = Column.new(title: "THREAD", width: 15, key: "n", need: 0, text: ->(row) { row.name.to_s }, order: name_order)

        SORTS = { wait: ALL[2], run: ALL[1], wait_p50: ALL[3], wait_p99: ALL[4], hold_p50: ALL[5], hold_p99: ALL[6],
                  preempted: ALL[7], state: ALL[0], name: NAME }.freeze
        GAP = 2
        MAX_NAME = 40

        class << self
          # @param sort [Symbol] one of {SORTS}
          # @return [Array<Sample::Row>]
          def sorted(rows, sort)
            rows.each_with_index.sort_by { |row, index| [SORTS.fetch(sort).order[row], index] }.map(&:first)
          end

          # @return [Symbol, nil] what a key sorts by
          def sort_of(key)
            SORTS.find { |_, column| column.key == key }&.first
          end

          # @param width [Integer, nil] nil: as wide as it gets
          # @return [Array<Column>] that fit beside a name
          def fitting(width)
            columns = ALL.dup
            columns.delete(columns.max_by(&:need)) while width && columns.any? && room_for_name(columns, width) < NAME.width
            columns
          end

          # @return [Integer] columns of the screen that are left for the name
          def room_for_name(columns, width)
            width - columns.sum { |column| column.width + GAP }
          end
        end
      end
    end
  end
end
