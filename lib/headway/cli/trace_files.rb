# frozen_string_literal: true

require "tmpdir"

module Headway
  module CLI
    # The files `headway run --record` and `--report` write: checked before the command starts, found after it ended.
    class TraceFiles
      # @param record [String, nil] the file asked for
      # @param report [String, nil] the page asked for; without a record the trace goes to a directory of its own
      # @raise [UsageError]
      def initialize(record, report)
        @report = report && checked(report, "--report")
        @directory = Dir.mktmpdir("headway") if report && record.nil?
        @record = record ? checked(record, "--record") : @directory && File.join(@directory, "run.headway")
        @earlier = there.to_h { |path| [path, File.mtime(path)] }
      end

      attr_reader :record, :report

      # @return [Array<String>] the command's trace and those of its children, but none an earlier run has left
      def written
        there.reject { |path| @earlier[path] == File.mtime(path) }
      end

      # @return [void]
      def clean_up
        FileUtils.rm_rf(@directory) if @directory
      end

      private

      def there
        return [] unless @record

        extension = File.extname(@record)
        stem = @record.delete_suffix(extension)
        child = /\A#{Regexp.escape(File.basename(stem))}(\.\d+)+#{Regexp.escape(extension)}\z/
        children = Dir.children(File.dirname(@record)).grep(child)
        [@record, *children.sort.map { |name| File.join(File.dirname(@record), name) }].select { |path| File.size?(path) }
      end

      def checked(path, option)
        path = File.expand_path(path)
        directory = File.dirname(path)
        raise UsageError, "#{option}: #{path} is a directory: give a file" if File.directory?(path)
        raise UsageError, "#{option}: there is no directory #{directory}" unless File.directory?(directory)
        raise UsageError, "#{option}: #{path} cannot be written" unless File.writable?(File.exist?(path) ? path : directory)

        path
      end
    end
  end
end
