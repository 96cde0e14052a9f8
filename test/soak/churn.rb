# frozen_string_literal: true

require "json"
require_relative "server"

module Soak
  # Each kind of churn for the same time, in processes one after the other: memory, threads and descriptors must not grow with the
  # rounds.
  class Churn
    # KB from the middle third to the last. Ruby's own memory wavers by less where nothing else happens; but where ever new workers
    # compress, what the C library keeps for each native thread goes on spreading for a while, and stacks are kept up to a bound.
    GROWS = { "offload" => 40_000, "blame" => 15_000 }.tap { |hash| hash.default = 8_000 }.freeze
    KINDS = File.read(File.join(__dir__, "churn_child.rb"))[/KINDS = %w\[(.*?)\]/m, 1].split.freeze
    PLAIN = File.read(File.join(__dir__, "churn_child.rb"))[/PLAIN = %w\[(.*?)\]/m, 1].split.freeze

    def initialize(seconds, options, out: $stdout)
      @seconds = seconds
      @options = options
      @out = out
    end

    # @return [Boolean] whether nothing grew
    def run
      kinds = @options.headway ? KINDS : PLAIN
      kinds.map { |kind| soak(kind, @seconds / kinds.size) }.all?
    end

    private

    def soak(kind, seconds)
      rows, status = Dir.mktmpdir("headway-soak") { |directory| play(kind, seconds, directory) }
      failure = status.success? ? growth(kind, rows) : "it ended with #{status}"
      first, last = rows[rows.size / 3], rows.last
      figures = %i[rss_kb threads descriptors].map { |name| "#{name} #{first&.fetch(name)} -> #{last&.fetch(name)}" }.join(", ")
      title = "churn #{kind}#{" without Headway" unless @options.headway}, Ruby #{RUBY_VERSION}"
      @out.puts "#{title}: #{last&.fetch(:rounds)} rounds, #{figures}"
      @out.puts "  LOST #{failure}" if failure
      failure.nil?
    end

    def play(kind, seconds, directory)
      command = [RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/test/soak/churn_child.rb", kind, seconds.to_s]
      command << "stock" unless @options.headway
      environment = { "HEADWAY_CONTROL_DIR" => File.join(directory, "control"), "TMPDIR" => directory }
      lines = IO.popen([environment, *command], &:readlines)
      [lines.grep(/\A\{/).map { |line| JSON.parse(line, symbolize_names: true) }, $?]
    end

    def growth(kind, rows)
      middle, last = rows.each_slice((rows.size / 3.0).ceil).to_a.last(2)
      { rss_kb: GROWS[kind], threads: 3, descriptors: 3 }.each do |name, most|
        grown = median(last, name) - median(middle, name)
        return "#{name} grew by #{grown}, from #{median(middle, name)}" if grown > most
      end
      nil
    end

    def median(rows, name) = rows.map { |row| row[name] }.sort[rows.size / 2]
  end
end
