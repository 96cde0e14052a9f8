# frozen_string_literal: true

require_relative "figures"

module Soak
  # What processes had while they were soaked: by how much it grew with the requests they answered.
  class Samples
    ENOUGH = 12
    # Answers, and then seconds: before that memory still grows to what the work needs, with Headway and without.
    WARM = 1_500
    LONG = 240
    # From which growth on, between the first third after the warm-up and the last, something is said to grow. Memory of Ruby's own
    # wavers by some MB; what leaks with requests goes beyond it.
    GROWS = { rss_kb: 24_000, threads: 6, descriptors: 8 }.freeze
    FIGURES = GROWS.keys.freeze

    def initialize
      @rows = Hash.new { |hash, pid| hash[pid] = [] }
    end

    # @param served [Integer] what it has done by now
    def take(pid, served, state = nil)
      figures = Figures.of(pid) or return
      @rows[pid] << figures.merge(served:, at: Process.clock_gettime(Process::CLOCK_MONOTONIC), **(state || {}))
    end

    def clear = @rows.clear

    # @return [Array<String>] a line for each process
    def lines
      long_enough.map do |pid, rows|
        served = rows.last[:served] - rows.first[:served]
        figures = FIGURES.map { |name| "#{name} #{third(rows, name, 0).round} -> #{third(rows, name, 2).round}" }
        collections = rows.last[:collections]
        first = rows.find { |row| row[:slots] }
        told = ", GC.count #{collections}, live objects #{first[:slots]} -> #{rows.last[:slots]}" if first && collections
        "process #{pid}: #{served} answers, #{figures.join(", ")}, #{slope(rows)} KB per 1,000#{told}"
      end
    end

    # @return [Array<String>] what grew
    def failures
      long_enough.flat_map do |pid, rows|
        rows = rows.select { |row| row[:served] >= WARM } if rows.last[:served].positive?
        next [] if rows.size < ENOUGH || rows.last[:at] - rows.first[:at] < LONG

        FIGURES.filter_map do |name|
          growth = third(rows, name, 2) - third(rows, name, 0)
          "process #{pid}: #{name} grew by #{growth.round}, from #{third(rows, name, 0).round}" if growth > GROWS[name]
        end
      end
    end

    private

    def long_enough = @rows.select { |_, rows| rows.size >= ENOUGH }

    def third(rows, name, index)
      values = rows.each_slice((rows.size / 3.0).ceil).to_a[index].map { |row| row[name] }.sort
      values[values.size / 2]
    end

    def slope(rows) = (Figures.slope(rows.map { |row| [row[:served] / 1000.0, row[:rss_kb]] })).round(1)
  end
end
