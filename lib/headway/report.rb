# frozen_string_literal: true

require_relative "base"
require_relative "draft"
require_relative "reason"
require_relative "report/document"

module Headway
  # What a trace says, in the forms that people and other tools read. Each form is a class in report/ with a `write`,
  # loaded when it is asked for.
  #
  #   trace = Headway::Trace.open("out.headway")
  #   Headway::Report.html(trace, "out.html")
  #   Headway::Report.text(trace, $stdout)
  #
  # A trace is anything that answers to_h, lanes and gc_lanes as {Trace} does.
  module Report
    autoload :HeldUp, File.expand_path("report/held_up", __dir__)

    # A report that could not be written. Its message is one line.
    class Error < Headway::Error; end

    FORMS = {
      text: %w[terminal Terminal], html: %w[html Html], perfetto: %w[perfetto Perfetto], firefox: %w[firefox Firefox],
      collapsed: %w[collapsed Collapsed], markdown: %w[markdown Markdown], json: %w[json Json]
    }.freeze
    # These show each thread's lane. A trace that is asked for lanes first needs one pass over its file instead of two.
    LANED = %i[html perfetto firefox].freeze
    private_constant :FORMS

    class << self
      # @!method html(trace, target)
      #   One page that opens from disk, with everything in it.
      # @!method perfetto(trace, target)
      #   A trace for Perfetto's viewer.
      # @!method firefox(trace, target)
      #   A profile for profiler.firefox.com.
      # @!method collapsed(trace, target)
      #   Blame as collapsed stacks, for flamegraph.pl and speedscope.
      # @!method markdown(trace, target)
      #   What one pastes into an issue.
      # @!method json(trace, target)
      #   The analysis as one object.
      # @!method text(trace, target)
      #   A summary for a terminal.
      # Each of them:
      # @param trace [Trace, Document] a document saves the analysis when several reports are made of one trace
      # @param target [String, IO] a path, or what to write to
      # @return [void]
      # @raise [Error] when the report cannot be written
      FORMS.each_key do |form|
        define_method(form) { |trace, target| write(form, trace, target) }
      end

      # Fails now rather than after minutes of reading.
      #
      # @param path [String]
      # @return [void]
      # @raise [Error] when nothing can be written there
      def check(path)
        return check_device(path) if File.exist?(path) && !File.file?(path)

        existed = File.exist?(path)
        File.open(path, "ab") { nil }
        File.delete(path) unless existed
      rescue SystemCallError => error
        raise Error, cannot_write(path, error)
      end

      # Half a report is none, and would be taken for one; and one that is there stays until this one is whole.
      #
      # @param path [String]
      # @yieldparam file [File]
      # @return [void]
      # @raise [Error] when it cannot be written
      def write_file(path, &)
        target = File.exist?(path) ? File.realpath(path) : path
        return File.open(target, "wb", &) unless replaceable?(target)

        Draft.write(target, "#{target}.#{Process.pid}.part") do |draft|
          File.open(draft, Draft::NEW, &)
          File.chmod(File.stat(target).mode, draft) if File.exist?(target)
        end
      rescue SystemCallError => error
        raise Error, cannot_write(path, error)
      end

      private

      def write(form, trace, target)
        document = trace.is_a?(Document) ? trace : Document.new(trace)
        report = build(form, document)
        return report.write(target) unless target.is_a?(String)

        write_file(target) { |file| report.write(file) }
      end

      def replaceable?(path) = File.writable?(File.dirname(path)) && (File.file?(path) || !File.exist?(path))

      def build(form, document)
        document.trace.lanes if LANED.include?(form)
        file, name = FORMS.fetch(form)
        require_relative "report/#{file}"
        const_get(name).new(document)
      end

      # A pipe or a device is opened once only, to be written.
      def check_device(path)
        raise Errno::EISDIR if File.directory?(path)
        raise Errno::EACCES unless File.writable?(path)
      end

      def cannot_write(path, error)
        "cannot write #{path.scrub}: #{Reason.of(error)}"
      end
    end
  end
end
