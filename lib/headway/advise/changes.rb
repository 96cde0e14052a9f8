# frozen_string_literal: true

require_relative "../advise"

module Headway
  module Advise
    # A setting as what one pastes: a diff for the server's own file, and for the environment.
    class Changes
      # A file of the server that has thread and process counts: how it is told, and its lines.
      Server = Data.define(:name, :command, :file, :threads, :processes)

      SERVERS = [
        Server.new(name: "Puma", command: /\bpuma\b/i, file: "config/puma.rb",
                   threads: [/\A\s*threads\b.*/, ->(count) { "threads #{count}, #{count}" }],
                   processes: [/\A\s*workers\b.*/, ->(count) { "workers #{count == 1 ? 0 : count}" }]),
        Server.new(name: "Sidekiq", command: /\bsidekiq\b/i, file: "config/sidekiq.yml",
                   threads: [/\A:?concurrency:.*/, ->(count) { ":concurrency: #{count}" }], processes: nil)
      ].freeze
      VM_SLICE_MS = 100
      private_constant :SERVERS, :VM_SLICE_MS

      # @param workload [Workload]
      # @param from [Predict::Setting]
      # @param to [Predict::Setting]
      # @param directory [String] where the server's file is looked for
      def initialize(workload, from, to, directory: ".")
        @command = workload.typical_process[:command]
        @server = SERVERS.find { |server| server.command.match?(@command) }
        @from = from
        @to = to
        @directory = directory
      end

      # @return [String] unified diffs; "" when nothing changes
      def diff = [server_diff, diff_of("environment", variables(@from), variables(@to))].compact.join

      # @return [Array<String>] what no file can say
      def words
        words = []
        words << "start #{@to.processes} processes instead of #{@from.processes}" if processes? && !@server&.processes
        words << "use #{@to.threads} threads instead of #{@from.threads}" if threads? && !@server
        words << "load Headway in the server: gem \"headway\", and Headway.start at boot (headway run does it for you)" if to_headway?
        words
      end

      # @return [Hash{String => String}] environment of the new setting
      def environment = variables(@to)

      # @return [String] how to run the program with it
      def run(options) = "headway run #{options} -- #{@command}"

      private

      def threads? = @from.threads != @to.threads

      def processes? = @from.processes != @to.processes

      def to_headway? = @from.policy == :stock && @to.policy != :stock

      def variables(setting)
        slice = Predict.number(setting.quantum_ms)
        if setting.policy == :stock
          return setting.quantum_ms == VM_SLICE_MS ? {} : { "RUBY_THREAD_TIMESLICE" => slice }
        end
        { "HEADWAY_POLICY" => setting.policy.to_s, **(setting.quantum_ms == VM_SLICE_MS ? {} : { "RUBY_THREAD_DEFAULT_QUANTUM_MS" => slice }) }
      end

      def server_diff
        return unless @server && (threads? || processes? && @server.processes)

        old = lines_of(File.join(@directory, @server.file)) || settings(@from)
        new = [@server.threads, @server.processes].compact.zip([@to.threads, @to.processes]).reduce(old) do |lines, ((pattern, line), count)|
          replace(lines, pattern, line.call(count))
        end
        unified(@server.file, old, new)
      end

      # nil where there is no such file, or none that we may read.
      def lines_of(path)
        File.read(path, encoding: Encoding::UTF_8).scrub.lines(chomp: true)
      rescue SystemCallError
        nil
      end

      def settings(setting)
        [@server.threads, @server.processes].compact.zip([setting.threads, setting.processes]).map { |(_, line), count| line.call(count) }
      end

      # The last one counts; one that isn't there is added.
      def replace(lines, pattern, line)
        place = lines.rindex { |one| pattern.match?(one) }
        return lines + [line] unless place

        lines.each_with_index.map { |one, i| i == place ? one.sub(pattern) { "#{one[/\A\s*/]}#{line}" } : one }
      end

      def diff_of(name, old, new)
        unified(name, old.map { |pair| pair.join("=") }, new.map { |pair| pair.join("=") }) unless old == new
      end

      # One hunk of the whole file, whose lines stay in their order.
      def unified(name, old, new)
        return if old == new

        body = Array.new([old.size, new.size].max) do |i|
          old[i] == new[i] ? " #{old[i]}\n" : [*("-#{old[i]}\n" if i < old.size), *("+#{new[i]}\n" if i < new.size)].join
        end
        "--- #{name}\n+++ #{name}\n@@ -#{span(old)} +#{span(new)} @@\n#{body.join}"
      end

      def span(lines) = "#{lines.empty? ? 0 : 1},#{lines.size}"
    end
  end
end
