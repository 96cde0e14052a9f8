# frozen_string_literal: true

require_relative "../advise"
require_relative "command_line"

module Headway
  module Advise
    # A setting as what one pastes: a diff for the server's own file, variables for its environment, and words for the rest.
    class Changes
      # Where Headway is in the server already.
      PLUGIN = /\A\s*plugin[\s(]+:headway\b/
      # A part of Sidekiq's threads with a count of their own.
      CAPSULES = /\A\s*:?capsules:/
      # A program that is installed with a gem, as the trace of one that was started by its name has it.
      GEM_PROGRAM = %r{\A/.*/(?:bundle|gems)/.*/?(?:bin|exe)/[^/]+\z}
      # Lines around a change.
      CONTEXT = 3
      # A configuration has less, as has a Gemfile.lock.
      FILE_BYTES = 4 << 20
      private_constant :PLUGIN, :CAPSULES, :GEM_PROGRAM, :CONTEXT, :FILE_BYTES

      # @param workload [Workload]
      # @param from [Predict::Setting]
      # @param to [Predict::Setting]
      # @param directory [String] where the server's file is looked for
      def initialize(workload, from, to, directory: ".")
        @workload = workload
        @command = Summary::Text.plain(workload.typical_process[:command])
        server = Predict::Server.of(workload)
        @line = CommandLine.new(@command, server)
        @server = server&.with(file: @line.file || server.file)
        @from = from
        @to = to
        @directory = directory
      end

      # @return [String] a unified diff of the server's file; "" when nothing changes there
      def diff = server_diff.to_s

      # @return [Array<String>] what no file can say
      def words
        words = environment_words
        words << "start it as #{command}" if on_line.any? { |what, count| @from.public_send(what) != count }
        words << "start #{counted(@to.processes, "process", "es")} instead of #{@from.processes}" if processes? && !@server&.processes
        words << "use #{counted(@to.threads, "thread")} instead of #{@from.threads}" if threads? && !@server
        words << "see that #{@server.file} makes #{counted(@to.threads, "thread")} of #{@from.threads}: it has several counts" if threads? && several?
        words << "see that pools of connections (database, Redis) have #{@to.threads} for each process" if @to.threads > @from.threads
        words << "see that the server starts Headway: #{starting} (headway run does it for you)" if to_headway? && !headway_there?
        words
      end

      # @return [Hash{String => String}] environment of the new setting
      def environment = variables(@to)

      # @return [String] how to run the program with it
      def run(options) = "#{headway} run #{options} -- #{command}"

      # @return [String] what Headway's command line is called here
      def headway = "#{"bundle exec " if bundled?("headway")}headway"

      private

      def counted(number, thing, ending = "s") = "#{number} #{thing}#{ending unless number == 1}"

      # Counts that the command line has.
      def on_line = %i[threads processes].select { |what| @line.count?(what) }.to_h { |what| [what, @to.public_send(what)] }

      def threads? = @from.threads != @to.threads

      def processes? = @from.processes != @to.processes

      def to_headway? = @from.policy == :stock && @to.policy != :stock

      # A program of a gem, which `bundle exec` has found, is where it is for Bundler alone.
      def command
        given = @line.with(on_line)
        titled = Trace::Title.command(given) and return titled

        program, arguments = given.split(" ", 2)
        name = File.basename(program.to_s)
        gem_program = GEM_PROGRAM.match?(program)
        bundled = program.to_s.include?("/bundle/") || lock.any?
        return Trace::Title.in_a_shell(given) unless gem_program || (bundled && of_bundle?(program, name))

        Trace::Title.in_a_shell([*("bundle exec" if bundled), name, *arguments].join(" "))
      end

      def of_bundle?(program, name)
        return false if !program.start_with?("/") || program == File.expand_path("bin/#{name}", @directory)

        name == @server&.name&.downcase || bundled?(Regexp.escape(name))
      end

      def starting
        case @server&.name
        when "Puma" then "gem \"headway\" in the Gemfile, and in #{@server.file} plugin :headway"
        when "Sidekiq" then "gem \"headway\" in the Gemfile, and where Sidekiq is configured Headway::Sidekiq.install"
        else "gem \"headway\" in the Gemfile, and Headway.start at boot"
        end
      end

      # By the server's file, by what marks Sidekiq's jobs, or as a Rails application's gem. Policy observe, which overrides them, doesn't
      # show it in the trace.
      def headway_there? = file.to_a.any?(PLUGIN) || @workload.jobs? || (bundled?("headway") && bundled?("railties"))

      def bundled?(gem) = lock.any?(/\A +#{gem} \(/)

      # Of the bundle here, if there is one.
      def lock = @lock ||= read("Gemfile.lock").to_a

      def environment_words
        from, to = [@from, @to].map { |setting| variables(setting) }
        set = to.reject { |name, value| from[name] == value }.map { |pair| pair.join("=") }
        unset = from.keys - to.keys
        [*("set in the environment: #{set.join(" ")}" if set.any?), *("unset in the environment: #{unset.join(" ")}" if unset.any?)]
      end

      def variables(setting)
        slice = setting.quantum_ms == Settings::VM_SLICE_MS ? nil : Predict.number(setting.quantum_ms)
        return { "RUBY_THREAD_TIMESLICE" => slice }.compact if setting.policy == :stock

        { "HEADWAY_POLICY" => setting.policy.to_s, "RUBY_THREAD_DEFAULT_QUANTUM_MS" => slice }.compact
      end

      def server_diff
        return unless @server && lines.any? && !several?

        old = file.to_a
        new = lines.reduce(old) { |all, (pattern, line, _, to)| replace(all, pattern, line.call(to)) }
        unified(old, new)
      end

      # Those that change: how it is found in the file, how it is written, its count before and after.
      def lines
        [*([*@server.threads, @from.threads, @to.threads] if @server.threads && !@line.count?(:threads)),
         *([*@server.processes, @from.processes, @to.processes] if @server.processes && !@line.count?(:processes))]
          .each_slice(4).reject { |_, _, from, to| from == to }
      end

      def file = @file ||= @server&.file && read(@server.file)

      # The lines of a file here; nil where there is none, or none that we may read. A trace names it, which may name anything: a device
      # that never ends, a pipe.
      def read(name)
        path = File.expand_path(name, @directory)
        File.read(path, encoding: "UTF-8:-").scrub.lines if File.file?(path) && File.size(path) <= FILE_BYTES
      rescue SystemCallError, ArgumentError # of a user whom there isn't
        nil
      end

      # A count for each environment, or counts that add up: which of them are to change one can't tell.
      def several?
        return false if @server&.name != "Sidekiq" || @line.count?(:threads)

        file.to_a.count { |line| @server.threads.first.match?(line) } > 1 || file.to_a.any?(CAPSULES)
      end

      # The last one counts; one that isn't there is added.
      def replace(lines, pattern, line)
        place = lines.rindex { |one| pattern.match?(one) }
        return [*lines[..-2], *lines.last&.sub(/(?<!\n)\z/, "\n"), "#{line}\n"] unless place

        lines.each_with_index.map { |one, i| i == place ? one.sub(pattern) { "#{one[/\A\s*/]}#{line}" } : one }
      end

      # Lines stay in their order: changed in their place, or added at the end. One hunk, from the first change to the last.
      def unified(old, new)
        changed = (0...[old.size, new.size].max).reject { |i| old[i] == new[i] }
        return if changed.empty?

        first = [changed.first - CONTEXT, 0].max
        old, new = [old, new].map { |lines| lines[first..changed.last + CONTEXT] || [] }
        body = Array.new([old.size, new.size].max) do |i|
          old[i] == new[i] ? " #{old[i]}" : [*("-#{old[i]}" if i < old.size), *("+#{new[i]}" if i < new.size)]
        end
        "--- #{file ? @server.file : "/dev/null"}\n+++ #{@server.file}\n@@ -#{span(first, old)} +#{span(first, new)} @@\n#{body.flatten.map { |line| ended(line) }.join}"
      end

      def ended(line) = line.end_with?("\n") ? line : "#{line}\n\\ No newline at end of file\n"

      def span(first, lines) = "#{lines.empty? ? first : first + 1},#{lines.size}"
    end
  end
end
