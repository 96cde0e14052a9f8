# frozen_string_literal: true

require_relative "listing"

module Headway
  module Report
    # A trace as what one pastes into an issue.
    class Markdown < Listing
      # Characters: no headline is longer, but a name may be.
      LONGEST = 2000
      private_constant :LONGEST

      # @param output [IO]
      def write(output)
        sections = [heading, totals, work, longest_waits, blocked, threads, pairs, blame, notes].reject(&:empty?)
        output << sections.map { |lines| lines.join("\n") }.join("\n\n") << "\n"
      end

      private

      def heading
        ["**#{plain(@data[:headline])}**", "",
         *@rows.processes.map do |process|
           "- #{code(process[:command])}, process #{process[:pid]}: Ruby #{plain(process[:ruby])}, Headway #{plain(@data[:headway])}, " \
             "#{plain(settings(process))}, #{process[:cpus]} CPUs, #{process[:events]} events, #{process[:dropped]} dropped"
         end, *@rows.more_processes&.then { |text| "- #{text}" }]
      end

      def totals
        wait = @totals[:wait]
        times = [@data[:wall_s], *@totals.values_at(:running_s, :ready_s, :suspended_s, :idle_s, :gc_s)]
        table(["recorded", "running", "ready", "suspended", "GVL free", "GC", "waits", "wait p50", "wait p99", "wait max"],
              [[*times.map { |one| time(one) }, wait[:count].to_s,
                *spread(wait.values_at(:p50_s, :p99_s, :max_s), wait[:count])]])
      end

      def work
        rows = work_cells.map { |name, *figures| [code(name), *figures] }
        return [] if rows.empty?

        more = @rows.more_work
        table(WORK.map { |_, title,| title }, rows) + (more.positive? ? ["", "and #{more} more that took less"] : [])
      end

      def longest_waits
        rows = @rows.longest_waits
        return [] if rows.empty?

        table(["of each kind the one that waited longest for the GVL", "in", "mostly behind", "at", "waited", "took", "share"],
              rows.map do |row|
                [code(row[:name]), plain(row[:thread]), row[:behind] ? code(row[:behind]) : "-", moment(row[:start]),
                 *row.values_at(:ready, :total).map { |one| time(one) }, row[:share] ? percent(row[:share]) : "-"]
              end, words: 3)
      end

      def blocked
        rows = @rows.blocked
        return [] if rows.empty?

        table([@rows.work? ? "work" : "thread", "where it was blocked for 10 ms and longer", "time", "share of that without the GVL"],
              rows.map { |row| [@rows.work? ? code(row[:who]) : plain(row[:who]), code(row[:line]), time(row[:time]), percent(row[:share])] }, words: 2)
      end

      def threads
        rows = @rows.threads
        return [] if rows.empty?

        more = @rows.more_threads
        table(["thread", "running", "ready", "suspended", "waits", "wait p50", "wait p99", "wait max"],
              rows.map do |row|
                [plain(row[:label]), *row.values_at(:running, :ready, :suspended).map { |one| time(one) },
                 row[:wait][:count].to_s, *spread(row[:wait].values_at(:p50, :p99, :max), row[:wait][:count])]
              end) + (more.positive? ? ["", "and #{more} more that waited less"] : [])
      end

      def pairs
        rows = @rows.pairs
        return [] if rows.empty?

        table(["who waited", "for whom", "time", "share"],
              rows.map { |row| [plain(row[:waiter]), plain(row[:holder]), time(row[:time]), percent(row[:share])] }, words: 2)
      end

      def blame
        rows = @rows.blame
        return [] if rows.empty?

        table(["what held the GVL while others waited", "time", "share"],
              rows.map { |row| ["#{code(row[:line])}#{row[:at]&.then { |at, work| ", #{at} #{code(work)}" }}", time(row[:time]), percent(row[:share])] })
      end

      def notes
        @data[:notes].map { |note| "> #{plain(note)}." }
      end

      def table(headings, rows, words: 1)
        rule = headings.each_index.map { |index| index < words ? "---" : "---:" }
        [headings, rule, *rows].map { |cells| "| #{cells.join(" | ")} |" }
      end

      def spread(figures, count)
        figures.map { |figure| count.zero? ? "-" : time(figure) }
      end

      # Names are the recorded program's and may hold what Markdown or HTML would take for its own.
      def plain(text)
        clean = Summary::Text.cut(text, LONGEST)
        clean.split(/(`[^`]*`)/).map { |part| part.start_with?("`") ? code(part[1..-2]) : escape(part) }.join
      end

      def escape(text) = text.gsub(/[\\*_|<>\[\]`]/) { |character| "\\#{character}" }

      def code(text)
        clean = Summary::Text.cut(text, 160).tr("`", "'").gsub("|", "\\|")
        clean.empty? ? "" : "`#{clean}`"
      end
    end
  end
end
