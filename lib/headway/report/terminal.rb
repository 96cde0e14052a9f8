# frozen_string_literal: true

require_relative "listing"

module Headway
  module Report
    # A trace as text for a terminal, in the words and columns of `headway run --summary`.
    class Terminal < Listing
      LINE = 160 # of code
      private_constant :LINE

      # @param output [IO]
      def write(output)
        room = TextWidth.of_terminal(output)
        output << [*headings, *totals, *work(room), *longest_waits, *blocked, *threads(room), *pairs, *blame, "", @data[:headline]].join("\n") << "\n"
      end

      private

      def headings
        lines = @rows.processes.map do |process|
          "Headway #{text(@data[:headway])}: process #{process[:pid]}, #{text(process[:command])}, Ruby #{text(process[:ruby])}, " \
            "#{text(settings(process), 120)}"
        end
        [*lines, *@rows.more_processes]
      end

      def totals
        switches = @totals[:switches]
        gc = @data[:gc]
        ["  #{time(@data[:wall_s])} recorded; over all threads: running #{time(@totals[:running_s])}#{off_cpu}, " \
         "ready #{time(@totals[:ready_s])}, suspended #{time(@totals[:suspended_s])}; GVL free #{time(@totals[:idle_s])}",
         "  waits: #{spread(@totals[:wait])}; holds: #{spread(@totals[:hold])}",
         "  switches: #{switches[:voluntary]} voluntary, #{switches[:preempted]} preempted; " \
         "GC: #{gc[:count].zero? ? "none" : "#{gc[:count]}, #{time(gc[:total_s])} in all, max #{time(gc[:max_s])}"}",
         "  events: #{@data[:processes].sum { |one| one[:events] }}, " \
         "dropped #{@data[:processes].sum { |one| one[:dropped] }}"]
      end

      def off_cpu
        " (#{time(@totals[:off_cpu_s])} of that on no processor)" if @totals[:off_cpu_s] >= Summary::ProcessorTime::SLIGHT_S
      end

      def threads(room)
        rows = @rows.threads
        return [] if rows.empty?

        more = @rows.more_threads
        ["", *Summary::Table.new(rows, room: room).lines, *("  and #{more} more that waited less" if more.positive?)]
      end

      def work(room)
        cells = work_cells
        return [] if cells.empty?

        more = @rows.more_work
        ["", *Summary::Columns.new(WORK, cells, room: room).lines, *("  and #{more} more that took less" if more.positive?)]
      end

      def longest_waits
        list("Of each kind the one that waited longest for the GVL, and what that was mostly behind", @rows.longest_waits) do |row|
          where = "at #{moment(row[:start])} in #{row[:thread]}"
          [time(row[:ready]), "of #{time(row[:total])}", [text("#{row[:name]}, #{where}", 120), *behind(row)].join(", ")]
        end
      end

      def blocked
        what, whose = @rows.work? ? ["work was", "its"] : ["threads were", "their"]
        list("Where #{what} blocked for 10 ms and longer, and how much of #{whose} time without the GVL that is", @rows.blocked) do |row|
          [time(row[:time]), percent(row[:share]), "#{text(row[:who], 40)}: #{text(row[:line], LINE)}"]
        end
      end

      def behind(row) = row[:behind] && "behind #{text(row[:behind], LINE)} (#{percent(row[:share])})"

      def pairs
        list("Who waited for whom", @rows.pairs) do |pair|
          [time(pair[:time]), percent(pair[:share]), "#{pair[:waiter]} waited for #{pair[:holder]}"]
        end
      end

      def blame
        list("What held the GVL while others waited", @rows.blame) do |row|
          [time(row[:time]), percent(row[:share]), [text(row[:line], LINE), *row[:at]&.join(" ")].join(", ")]
        end
      end

      def list(title, rows)
        return [] if rows.empty?

        cells = rows.map { |row| yield row }
        widths = cells.transpose.first(2).map { |column| column.map(&:length).max }
        lines = cells.map { |first, second, last| "  #{first.rjust(widths[0])}  #{second.rjust(widths[1])}  #{last}" }
        ["", "  #{title}", *lines]
      end

      def spread(figures)
        return "none" if figures[:count].zero?

        "#{figures[:count]}, p50 #{time(figures[:p50_s])}, p99 #{time(figures[:p99_s])}, max #{time(figures[:max_s])}"
      end

      def text(value, width = 80) = Summary::Text.cut(value, width)
    end
  end
end
