# frozen_string_literal: true

require_relative "options"
require_relative "process_argument"
require_relative "../summary"

module Headway
  module CLI
    # `headway top`: who runs, who waits, in a process that runs Headway; without a PID, which processes do.
    module Top
      INTERVALS = (0.1..3600).freeze
      private_constant :INTERVALS

      class << self
        # @param argv [Array<String>]
        # @return [Integer] the exit status
        # @raise [UsageError]
        def call(argv)
          options = { interval: 1.0, sort: :wait }
          pid, *rest = parser(options).anywhere(argv)
          raise UsageError, "#{rest.first.scrub.inspect} is not expected here: top takes one PID" if rest.any?
          return list(options) if pid.nil?

          pid = ProcessArgument.pid(pid)
          return print_json(named_stats(pid)) if options[:json]

          options[:once] || !screen? ? once(pid, options) : watch(pid, options)
        end

        private

        # An editor's shell is a terminal, and shows as text what would move a cursor.
        def screen? = $stdout.tty? && ENV["TERM"] != "dumb"

        def parser(options)
          require_relative "top/columns"
          Options.new("top", "[options] [PID]") do |parser|
            parser.on("--interval S", "seconds between refreshes (1)") { |value| options[:interval] = interval(value) }
            parser.on("--sort KEY", "#{Columns::SORTS.keys.join(", ")} (wait)") { |value| options[:sort] = sort(value) }
            parser.on("--once", "print once, as when the output is no terminal, or a dumb one") { options[:once] = true }
            parser.on("--json", "print one JSON object") { options[:json] = true }
            parser.separator("")
            parser.separator("Without a PID: the processes of yours that run Headway.")
            parser.separator("Keys: q quits, up and down scroll, + and - change the interval, and these sort:")
            parser.separator("  #{Columns::SORTS.map { |name, column| "#{column.key} #{name}" }.join(", ")}")
            parser.separator("")
          end
        end

        def interval(text)
          seconds = text.match?(/\A\d+(\.\d+)?\z/) && text.to_f
          return seconds if seconds && INTERVALS.cover?(seconds)

          raise UsageError, "--interval is #{text.scrub.inspect}: give seconds from 0.1 to 3600, such as 2"
        end

        def sort(text)
          name = Columns::SORTS.keys.find { |key| key.to_s == text }
          name || raise(UsageError, "--sort is #{text.scrub.inspect}: give #{Columns::SORTS.keys.join(", ")}")
        end

        def list(options)
          require_relative "top/process_list"
          processes = ProcessList.new(Control::Processes.all)
          return print_json(processes.to_h) if options[:json]

          Control::Processes.faults.each { |fault| CLI.say("#{fault}: what is in it is not looked at") }
          puts processes.lines(width: $stdout.tty? ? console_width : nil)
          0
        end

        def once(pid, options)
          require_relative "top/frame"
          require_relative "top/sample"
          sample = Sample.new(named_stats(pid))
          width = $stdout.tty? ? console_width : nil
          puts Frame.new(sample, sort: options[:sort], command: Control::Processes.command_of(pid)).lines(width: width)
          0
        end

        # Names of blamed lines are looked up when somebody asks for the first time.
        def named_stats(pid)
          stats = ProcessArgument.ask(pid, &:stats)
          return stats if stats[:blame][:lines].all? { |line| line[:method] }

          sleep 0.05
          ProcessArgument.ask(pid, &:stats)
        end

        def watch(pid, options)
          require_relative "top/watch"
          ProcessArgument.ask(pid, &:ping) # what is wrong is said before the screen is taken
          Watch.new(pid, **options.slice(:interval, :sort)).call
        end

        def console_width
          require "io/console"
          $stdout.winsize.last.clamp(20..) # a terminal that doesn't know its size says 0
        rescue SystemCallError
          80
        end

        def print_json(object)
          require "json"
          puts JSON.pretty_generate(object)
          0
        end
      end
    end
  end
end
