# frozen_string_literal: true

require "digest/sha2"
require "fileutils"
require "tmpdir"

require_relative "../control/directory"
require_relative "../draft"
require_relative "../reason"
require_relative "../recorder/file_name"
require_relative "file_body"

module Headway
  class Web
    # Traces that were captured here, in a directory that nobody else can enter, and the report of each, made when it is asked for. All
    # processes of the application share the directory. No more than a few files are kept, of a limited size: the oldest go.
    class Captures
      MOST = 10
      FILE_BYTES = 64 << 20
      ALL_BYTES = 256 << 20
      NAME = /\A(\d{1,10})-(\d{8}T\d{6}\.\d{3}Z)\.headway\z/.freeze
      # Ours, and what a dump or a report of that name is written to first.
      DRAFT = /\A\d{1,10}-\d{8}T\d{6}\.\d{3}Z\.headway(\.html)?\.part(\.(\d+\.)?part)?\z/.freeze
      private_constant :NAME, :DRAFT

      # A capture or a report that was not made. Its message is one line.
      class Error < Headway::Error
        def initialize(status, message)
          super(Reason.utf8(message))
          @status = status
        end

        attr_reader :status
      end

      # A check for {Integrations::Options}.
      DIRECTORY = lambda do |name, value|
        (value.is_a?(String) || value.respond_to?(:to_path)) && !value.to_s.empty? or
          raise SettingError, "#{name} is #{value.inspect[0, 60]}: give a path"
      end

      # Where an application's captures go unless it names a place: none that another application of the same user looks into. Another
      # release's directory is another application's: PWD, in which a link to the current one may stand, is not always set or right.
      def self.default_directory
        File.join(temporary, "headway-web-#{::Process.euid}-#{Digest::SHA256.hexdigest(place)[0, 8]}")
      end

      def self.place
        Dir.pwd
      rescue SystemCallError # a release that was removed: it is told from others all the same
        stat = File.stat(".")
        "#{stat.dev}-#{stat.ino}"
      end

      # Where nothing can be written, as in a container whose file system is read-only, only a capture fails, and says so.
      def self.temporary
        Dir.tmpdir
      rescue ArgumentError
        "/tmp"
      end
      private_class_method :place, :temporary

      # @param directory [String, nil] made when something is captured
      # @raise [SettingError] one that is not for us alone
      def initialize(directory = nil)
        @directory = Recorder::FileName.absolute(directory || self.class.default_directory, from: "directory")
        fault = File.symlink?(@directory) || File.exist?(@directory) ? Control::Directory.fault(@directory) : nil
        raise SettingError, "directory is #{directory.inspect}: #{fault}" if fault && directory
      end

      # Has a process write what its flight recorder holds.
      #
      # @param client [Control::Client]
      # @return [String] the file's name
      # @raise [Error] a capture is under way, no flight recorder runs there, or the file can't be written or is too large
      def take(client)
        alone do
          name = "#{client.pid}-#{Time.now.utc.strftime("%Y%m%dT%H%M%S.%LZ")}.headway"
          remove_old(MOST - 1)
          draft(name) { |part| dump(client, part) }
          remove_old(MOST)
          name
        end
      end

      # @return [Array<Hash>] the newest first
      def list
        names.map { |name| { name: name, pid: name[NAME, 1].to_i, at: name[NAME, 2], bytes: size(name) } }.reverse
      end

      # @param name [String]
      # @return [Array, nil] Rack's response: the trace
      def download(name)
        path = path_of(name)
        path && file(path, "content-type" => "application/octet-stream",
                           "content-disposition" => "attachment; filename=\"#{name}\"")
      rescue SystemCallError
        nil
      end

      # @param name [String]
      # @return [Array, nil] Rack's response: the report on it, a page
      # @raise [Error] the trace can't be read, or something else is being made
      def report(name)
        path = path_of(name)
        return unless path

        page = "#{path}.html"
        unless plain?(page)
          require_relative "../report" # not below, where a clause names its errors: what ends the loading has to pass
          alone do
            remove_old(MOST, name)
            write_report(path, page)
          end
        end
        file(page, "content-type" => "text/html; charset=utf-8", "content-security-policy" => Page.report_policy(page))
      rescue Errno::ENOENT
        nil
      end

      private

      # Only what is listed, whatever was asked for.
      def path_of(name)
        File.join(@directory, name) if names.include?(name)
      end

      def names
        return [] if Control::Directory.fault(@directory)

        Dir.children(@directory).grep(NAME).select { |name| plain?(File.join(@directory, name)) }.sort_by { |name| name[NAME, 2] }
      rescue SystemCallError
        []
      end

      # Without an error for one that another process has removed just now: the others are there.
      def plain?(path)
        File.file?(path) && !File.symlink?(path)
      end

      def size(name)
        File.size?(File.join(@directory, name)).to_i
      end

      def file(path, headers)
        body = FileBody.new(path)
        [200, { "content-length" => body.bytesize.to_s, **headers }, body]
      end

      # One at a time in all processes; the lock goes with the process that has it.
      def alone
        prepare
        File.open(File.join(@directory, "lock"), File::RDWR | File::CREAT, 0o600) do |lock|
          lock.flock(File::LOCK_EX | File::LOCK_NB) or raise Error.new(409, "something is being captured or reported just now: try again in a moment")
          yield
        end
      rescue SystemCallError => error
        raise Error.new(500, "#{@directory}: #{Reason.of(error)}")
      end

      def prepare
        FileUtils.mkdir_p(@directory, mode: 0o700)
        fault = Control::Directory.fault(@directory)
        raise Error.new(500, "captures can't be kept: #{fault}") if fault
      end

      def draft(name)
        Draft.write(File.join(@directory, name)) do |part|
          yield part
          too_large = File.size(part) > FILE_BYTES
          raise Error.new(413, "#{File.size(part)} bytes are too much, #{FILE_BYTES} are kept at most: give the flight recorder fewer events") if too_large
        end
      end

      def dump(client, part)
        client.dump(part)
      rescue Control::ClientError => error
        hint = ": start one here or with Headway::Recorder.start(mode: :flight)" if error.no_flight_recorder?
        raise Error.new(422, "#{error.message}#{hint}")
      end

      def write_report(path, page)
        draft(File.basename(page)) { |part| Report.html(Trace.open(path, lanes: true), part) } unless plain?(page)
      rescue Trace::Error, Report::Error => error
        raise Error.new(422, error.message.gsub("#{@directory}/", ""))
      end

      # Beyond so many, and beyond so many bytes, one more file among them, but for the needed one; also what a process that was killed
      # has left.
      def remove_old(most, needed = nil)
        kept = names.last(most) - [needed]
        kept.shift while kept.any? && [*kept, *needed].sum { |name| size(name) + size("#{name}.html") } > ALL_BYTES - FILE_BYTES
        (names - kept - [needed]).each { |name| FileUtils.rm_f([File.join(@directory, name), File.join(@directory, "#{name}.html")]) }
        Dir.children(@directory).grep(DRAFT).each { |name| FileUtils.rm_f(File.join(@directory, name)) }
      end
    end
  end
end
