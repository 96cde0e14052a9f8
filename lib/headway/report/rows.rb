# frozen_string_literal: true

require_relative "labels"
require_relative "behind"
require_relative "elsewhere"

module Headway
  module Report
    # What the terminal's summary and the Markdown list, worst first and no more than a person reads.
    class Rows
      MOST_PROCESSES = 10
      MOST_THREADS = 20
      MOST_WORK = 20
      MOST_PAIRS = 10
      MOST_METHODS = 10
      MOST_LONGEST = 5
      # Shorter waits nobody looks into.
      LONG_S = 0.001
      # Below this share of the longest, a wait or a line of code is not worth one here.
      MINOR = 0.01
      # Of a wait, a line that had less doesn't explain it.
      TELLING = 0.25
      # A line of code in one of the terminal: its method, its path, and what it was calling.
      ROOM = 120
      UNKNOWN = { method: "unknown code" }.freeze
      private_constant :MOST_PROCESSES, :MOST_THREADS, :MOST_WORK, :MOST_PAIRS, :MOST_METHODS, :MOST_LONGEST,
                       :LONG_S, :MINOR, :TELLING, :ROOM, :UNKNOWN

      # @param document [Document]
      def initialize(document)
        @data = document.to_h
        @labels = document.labels
        @behind = Behind.new(@data)
      end

      # @return [Array<Hash>] the longest waiters, as a row of {Headway.stats} with a label in place of its name
      def threads
        @data[:threads].sort_by { |thread| [-thread[:ready_s], -thread[:running_s]] }.first(MOST_THREADS).map do |thread|
          { label: @labels.thread(thread[:id]), running: thread[:running_s], ready: thread[:ready_s],
            suspended: thread[:suspended_s], wait: spread(thread[:wait]), hold: spread(thread[:hold]) }
        end
      end

      # @return [Array<Hash>] the first processes
      def processes = @data[:processes].first(MOST_PROCESSES)

      # @return [String, nil] how many {#processes} leaves out
      def more_processes
        "and #{@data[:processes].size - MOST_PROCESSES} more processes" if @data[:processes].size > MOST_PROCESSES
      end

      # @return [Integer] how many threads {#threads} leaves out
      def more_threads
        [@data[:threads].size - MOST_THREADS, 0].max
      end

      # @return [Array<Hash>] the kinds of work that took longest: :name, :count, :total, :running, :ready, :suspended, and :blamed, what
      #   others waited for them
      def work
        @data[:work].max_by(MOST_WORK) { |kind| kind[:total_s] }.map do |kind|
          { name: kind[:name].empty? ? "(no name)" : Summary::Text.cut(kind[:name]), count: kind[:count], total: kind[:total_s],
            running: kind[:running_s], ready: kind[:ready_s], suspended: Elsewhere.seconds(kind), blamed: kind[:blamed_s] }
        end
      end

      # @return [Integer] how many kinds {#work} leaves out
      def more_work = [@data[:work].size - MOST_WORK, 0].max

      # @return [Array<Hash>] of each kind the single piece of work that waited longest: :name, :thread, :start, :total, :ready, and :behind, the
      #   line that holders were in for most of that, and for which :share of it they were seen there; nil: in none for long
      def longest_waits
        kinds = @data[:work].select { |kind| kind[:longest] && kind[:longest][:ready_s] >= LONG_S }
        kinds.max_by(MOST_LONGEST) { |kind| kind[:longest][:ready_s] }.map do |kind|
          one = kind[:longest]
          line, share = called_by_line(one[:behind]) { |stack| stack[:s] / one[:ready_s] }.transform_values { |leaves| leaves.values.sum }.max_by(&:last)
          line = nil if share.to_f < TELLING
          { name: name_of(kind), thread: @labels.thread(one[:thread]), start: one[:start_s], total: one[:total_s], ready: one[:ready_s],
            behind: line && line_of(line), share: line && share }
        end
      end

      # @return [Array<Hash>] who waited for whom (:waiter, :holder), :time and :share of the waiter's waits
      def pairs
        all = @data[:threads].flat_map { |thread| thread[:waited_for].map { |part| [thread, part] } }
        least = [MINOR * (all.map { |_, part| part[:s] }.max || 0.0), 1e-6].max
        all.select { |_, part| part[:s] >= least }.max_by(MOST_PAIRS) { |_, part| part[:s] }.map do |thread, part|
          { waiter: @labels.thread(thread[:id]), holder: @labels.holder(part), time: part[:s],
            share: thread[:ready_s].positive? ? part[:s] / thread[:ready_s] : 0.0 }
        end
      end

      # @return [Array<Hash>] the very lines of the program that held the GVL while others waited, and what they were calling: :line, :time,
      #   :share, and :at, "at" or "mostly at" and the name of the work that was in it; nil: none mostly was
      def blame
        all = @data[:blame][:weight_s]
        kinds = @data[:work].map { |kind| [kind, called_by_line(kind[:blamed]) { |stack| stack[:s] }] }
        longest(called_by_line(@data[:blame][:stacks]) { |stack| stack[:weight_s] }) do |line, time|
          at, (kind,) = Behind.at_work(kinds, time) { |_, lines| lines[line].values.sum }
          { at: at && [at, name_of(kind)], share: all.positive? ? time / all : 0.0 }
        end
      end

      # @return [Array<Hash>] the lines of the program in which work was blocked, or without any threads, and what they were calling: :line,
      #   :who, :time, and :share of what that work, or these threads, spent without the GVL
      def blocked
        rows = work? ? blocked_work : blocked_threads
        least = MINOR * (rows.map { |row| row[:time] }.max || 0.0)
        rows.select { |row| row[:time] >= least }.max_by(MOST_METHODS) { |row| row[:time] }
      end

      # @return [Boolean] whether anything is marked
      def work? = @data[:work].any?

      private

      def blocked_work
        @data[:work].flat_map do |kind|
          longest(called_by_line(kind[:blocked]) { |stack| stack[:s] }) do |_, time|
            { who: name_of(kind), share: [time / Elsewhere.seconds(kind), 1.0].min }
          end
        end
      end

      # Pools have dozens of them, alike.
      def blocked_threads
        lines = @data[:threads].map { |thread| called_by_line(thread[:blocked]) { |stack| stack[:s] } }
        longest(called_by_line(@data[:threads].flat_map { |thread| thread[:blocked] }) { |stack| stack[:s] }) do |line, time|
          threads = @data[:threads].zip(lines).filter_map { |thread, its| thread if its.key?(line) }
          who = threads.one? ? @labels.thread(threads.first[:id]) : "#{threads.size} threads"
          { who: who, share: [time / threads.sum { |thread| thread[:suspended_s] }, 1.0].min }
        end
      end

      # @yieldreturn [Float] a stack's seconds
      # @return [Hash] of each line, a frame, the methods it was in, with their times; "": none but its own
      def called_by_line(stacks)
        stacks.each_with_object(Hash.new { |lines, line| lines[line] = Hash.new(0.0) }) do |stack, lines|
          frame = @behind.telling(stack)
          leaf = @behind.leaf(stack) if frame
          lines[frame || UNKNOWN][leaf.equal?(frame) ? "" : Labels.method_of(leaf)] += yield stack
        end
      end

      # @yieldparam line [Hash]
      # @yieldparam time [Float]
      # @yieldreturn [Hash] what else there is to tell
      def longest(called)
        times = called.transform_values { |leaves| leaves.values.sum }
        least = MINOR * (times.values.max || 0.0)
        times.select { |_, time| time.positive? && time >= least }.max_by(MOST_METHODS, &:last).map do |line, time|
          { line: line_of(line, calling(called[line], time)), time: time, **yield(line, time) }
        end
      end

      def line_of(frame, calling = "") = "#{Labels.frame(frame, room: ROOM - calling.length)}#{calling}"

      def name_of(kind) = kind[:name].empty? ? "work without a name" : Summary::Text.cut(kind[:name])

      def calling(leaves, time)
        most, its = leaves.max_by(&:last)
        return "" if most.empty?
        return " (in #{most})" if leaves.one?

        its >= Behind::MOSTLY * time ? " (mostly in #{most})" : " (in #{most} and #{leaves.size - 1} more)"
      end

      def spread(figures)
        { count: figures[:count], p50: figures[:p50_s], p99: figures[:p99_s], max: figures[:max_s] }
      end
    end
  end
end
