# frozen_string_literal: true

require_relative "../reason"
require_relative "../recorder/file_name"

module Headway
  module Control
    # Where the sockets of a user's processes are: a directory that nobody else can enter.
    module Directory
      class << self
        # @return [String] where this process's socket goes
        # @raise [SettingError] see {candidates}
        def for_server(env = ENV)
          candidates(env).first
        end

        # A server may have had another environment than who looks for it, so all places are looked at, unless one is named.
        #
        # @return [Array<String>]
        # @raise [SettingError] the one that is named is not absolute, and there is no current directory
        def candidates(env = ENV, uid: Process.euid)
          named = env["HEADWAY_CONTROL_DIR"].to_s
          return [Recorder::FileName.absolute(named, from: "HEADWAY_CONTROL_DIR")] unless named.empty?

          [runtime(env), *temporary(env).map { |directory| File.join(directory, "headway-#{uid}") }].compact.uniq
        end

        # @return [String, nil] why the directory must not be trusted
        def fault(directory, uid: Process.euid)
          info = File.lstat(directory)
          if !info.directory? then "#{directory} is no directory"
          elsif info.uid != uid then "#{directory} belongs to another user"
          elsif info.mode & 0o077 != 0 then "#{directory} can be entered by others: it takes one of your own that nobody else can (mode 700)"
          end
        rescue SystemCallError => error
          "#{directory}: #{Reason.of(error)}"
        end

        private

        # Under sudo the variable may name another user's.
        def runtime(env)
          directory = env["XDG_RUNTIME_DIR"].to_s
          File.join(directory, "headway") if directory.start_with?("/") && File.directory?(directory) && File.owned?(directory)
        end

        def temporary(env)
          directory = env["TMPDIR"].to_s
          named = [directory.chomp("/")] if directory.start_with?("/") && directory != "/" && File.directory?(directory)
          [*named, "/tmp"]
        end
      end
    end
  end
end
