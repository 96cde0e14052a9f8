# frozen_string_literal: true

require_relative "options"
require_relative "trace_arguments"
require_relative "../report"

module Headway
  module CLI
    # `headway report`: what a trace file says, as text or in the form asked for.
    module Report
      FORMS = {
        html: "one page that opens from disk, with timelines and blame",
        perfetto: "a trace for ui.perfetto.dev",
        firefox: "a profile for profiler.firefox.com",
        collapsed: "blame as collapsed stacks, for flamegraph.pl and speedscope",
        markdown: "what one pastes into an issue"
      }.freeze
      STDOUT = "-"
      private_constant :FORMS, :STDOUT

      class << self
        # @param argv [Array<String>]
        # @return [Integer] the exit status
        # @raise [UsageError]
        def call(argv)
          targets = {}
          words = parser(targets).anywhere(argv)
          TraceArguments.need(words, "report")
          targets[:text] = STDOUT if targets.empty?
          files = TraceArguments.files(words)
          check(targets, files)
          document = read(files, lanes: targets.keys.any? { |form| Headway::Report::LANED.include?(form) })
          TraceArguments.warn_of_runs(document.to_h[:processes], files) if files != words
          make(targets, document)
          0
        rescue Headway::Report::Error, Headway::Trace::Error => error # files are read again while reports are made
          raise UsageError, error.message
        end

        private

        def parser(targets)
          Options.new("report", "FILE|DIRECTORY... [options]") do |parser|
            FORMS.each do |form, purpose|
              parser.on("--#{form} OUT", purpose) { |out| targets[form] = target(form, out) }
            end
            parser.on("--json", "print the analysis as one JSON object") { targets[:json] = STDOUT }
            explain(parser)
          end
        end

        def explain(parser)
          parser.separator("")
          parser.separator("Without an option, a summary is printed. OUT may be - for standard output. Several files,")
          parser.separator("one per process, are put on one clock; a DIRECTORY stands for every *.headway below it.")
          parser.separator("")
        end

        # An option in the place of a file name is a forgotten file name.
        def target(form, out)
          return out unless out.start_with?("-") && out != STDOUT || out.empty?

          raise UsageError, "--#{form} needs a file name, or - for standard output"
        end

        def check(targets, files)
          printed, written = targets.partition { |_, out| out == STDOUT }
          raise UsageError, "only one report can go to standard output: #{options(printed)} ask for it" if printed.size > 1

          same = written.group_by(&:last).values.find { |group| group.size > 1 }
          raise UsageError, "#{options(same)} are to go to one file: give each its own" if same

          written.each do |form, out|
            TraceArguments.spare(files, out, "--#{form}")
            Headway::Report.check(out)
          end
        end

        def options(targets)
          targets.map { |form, _| "--#{form}" }.join(" and ")
        end

        def read(files, lanes:)
          trace = Headway::Trace.open(*files, lanes: lanes)
          Headway::Report::Document.new(trace).tap(&:to_h)
        end

        def make(targets, document)
          warn_of(document, targets)
          targets.each do |form, out|
            $stdout.binmode if form == :perfetto && out == STDOUT
            Headway::Report.public_send(form, document, out == STDOUT ? $stdout : out)
          end
        end

        # On stderr, where they are seen whatever becomes of the report.
        def warn_of(document, targets)
          notes = document.to_h[:notes].dup
          if targets.key?(:collapsed) && document.to_h[:blame][:stacks].empty?
            notes << "nobody was seen holding the GVL while others waited, so there are no stacks"
          end
          notes.each { |note| CLI.say("warning: #{note}") }
        end
      end
    end
  end
end
