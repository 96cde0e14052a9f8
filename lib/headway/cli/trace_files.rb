# frozen_string_literal: true

require "tmpdir"
require_relative "../reason"
require_relative "../recorder/file_name"

module Headway
  module CLI
    # The files `headway run --record` and `--report` write: checked before the command starts, found after it ended.
    class TraceFiles
      # @param record [String, nil] the file asked for, or a directory; see {Recorder::FileName}
      # @param report [String, nil] the page asked for; without a record the trace goes to a directory of its own
      # @raise [UsageError]
      def initialize(record, report)
        @report = report && checked(page(report), "--report")
        @directory = directory if report && record.nil?
        @record = record ? checked(named(record), "--record") : @directory && File.join(@directory, "run.headway")
        @earlier = there.to_h { |path| [path, File.mtime(path)] }
      end

      attr_reader :record, :report

      # @return [Array<String>] the command's trace and those of its children, but none an earlier run has left
      def written
        there.reject { |path| @earlier[path] == File.mtime(path) }
      end

      # @return [Boolean] whether the trace is there afterwards, too
      def kept? = @directory.nil?

      # @return [void]
      def clean_up
        FileUtils.rm_rf(@directory) if @directory
      end

      private

      def directory
        Dir.mktmpdir("headway")
      rescue SystemCallError => error
        raise UsageError, "--report: no trace can be written to #{Dir.tmpdir} meanwhile: #{Reason.of(error)}; set TMPDIR, or give --record FILE"
      rescue ArgumentError => error # Dir.tmpdir's
        raise UsageError, "--report: no trace can be written meanwhile: #{Reason.of(error)}; set TMPDIR, or give --record FILE"
      end

      def there
        return [] unless @record

        extension = File.extname(@record)
        name = /\A#{Recorder::FileName.expression(File.basename(@record, extension))}(\.\d+)*#{Regexp.escape(extension)}\z/
        names = Dir.children(File.dirname(@record)).select { |one| name.match?(one.scrub) }.sort
        [@record, *names.map { |one| File.join(File.dirname(@record), one) }].uniq.select { |path| File.size?(path) }
      rescue Errno::ENOENT # the command has taken the directory away, whose status counts all the same
        []
      end

      # Whoever gives another form's name expects that form.
      def page(report)
        return report if ["", ".html", ".htm"].include?(File.extname(report).downcase)

        raise UsageError, "--report is #{report.scrub.inspect}: give a name that ends in .html, as it makes a page; for other " \
                          "forms take --record FILE, then headway report FILE with --perfetto, --firefox, --collapsed, " \
                          "--markdown or --json"
      end

      def named(record)
        Recorder::FileName.resolve(record) # says what is wrong with it
        Recorder::FileName.pattern(record)
      rescue SettingError => error
        raise UsageError, error.message.sub("file is", "--record is")
      end

      def checked(path, option)
        path = Recorder::FileName.absolute(path)
        directory = File.dirname(path)
        raise UsageError, "#{option}: #{path} is a directory: give a file" if File.directory?(path)
        raise UsageError, "#{option}: there is no directory #{directory}" unless File.directory?(directory)
        raise UsageError, "#{option}: #{path} is there and is no trace: give another name, or remove it" if overwritten?(path, option)
        raise UsageError, "#{option}: #{path} cannot be written" unless File.writable?(File.exist?(path) ? path : directory)

        try(option == "--record" ? Recorder::FileName.resolve(path) : path) unless File.exist?(path)
        path
      rescue SettingError => error
        raise UsageError, error.message.sub("file is", "#{option} is")
      rescue SystemCallError => error
        raise UsageError, "#{option}: #{path} cannot be written: #{Reason.of(error)}"
      end

      def overwritten?(path, option) = option == "--record" && Recorder::FileName.spared?(path)

      # To root every directory is writable, those too in which nothing can be made.
      def try(path)
        File.open(path, File::WRONLY | File::CREAT | File::EXCL) { nil }
        File.delete(path)
      end
    end
  end
end
