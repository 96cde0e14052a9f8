# frozen_string_literal: true

require_relative "../../summary"
require_relative "../../text_width"

module Headway
  module CLI
    module Top
      # `headway top` without a PID: the processes that run Headway, a line each.
      class ProcessList
        NONE = "No process of yours runs Headway. Start one with headway run COMMAND, or call Headway.start in it."
        TITLES = ["PID", "FOR", "POLICY", "QUANTUM", "THREADS", "WAIT P99", "RUBY", "COMMAND"].freeze
        private_constant :NONE, :TITLES

        # @param processes [Array<Control::Processes::Found>]
        def initialize(processes)
          @rows = processes.map { |found| [found, stats(found)] }
        end

        # @param width [Integer, nil]
        # @return [Array<String>]
        def lines(width: nil)
          return [NONE] if @rows.empty?

          cells = [TITLES, *@rows.map { |found, stats| cells(found, stats) }]
          widths = cells.transpose.map { |column| column.map { |text| TextWidth.of(text) }.max }
          cells.map do |row|
            line = row[0..-2].each_with_index.map { |text, index| text.rjust(widths[index]) }.push(row.last).join("  ")
            width ? TextWidth.cut(line, width) : line
          end
        end

        # @return [Hash] for --json
        def to_h
          { headway: VERSION, schema: 1,
            processes: @rows.map { |found, stats| { pid: found.client.pid, command: found.command, **what(stats) } } }
        end

        private

        def stats(found)
          found.ping[:error] ? { error: found.ping[:error] } : found.client.stats
        rescue Control::ClientError => error
          { error: error.message }
        end

        def what(stats)
          return { error: stats[:error] } if stats[:error]

          { wall_s: stats[:wall], policy: stats[:policy], quantum_ms: stats[:quantum_ms], preempt: stats[:preempt],
            threads: stats[:process][:threads], wait_p99_s: stats[:process][:wait][:p99], ruby: stats[:ruby] }
        end

        def cells(found, stats)
          command = Summary::Text.cut(found.command, 1000)
          return [found.client.pid.to_s, *["-"] * 6, "#{command} (#{stats[:error]})"] if stats[:error]

          [found.client.pid.to_s, Summary::Text.age(stats[:wall]), stats[:policy], "#{format("%g", stats[:quantum_ms])} ms",
           stats[:process][:threads].to_s, Summary::Text.duration(stats[:process][:wait][:p99]), stats[:ruby], command]
        end
      end
    end
  end
end
