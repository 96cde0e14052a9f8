# frozen_string_literal: true

require_relative "client"

module Headway
  module Control
    # The processes of this user that run Headway, by the sockets they have.
    module Processes
      # One that was found: its PID, what it answered to a ping, and its command line as it is now.
      Found = Struct.new(:client, :ping, :command)

      class << self
        # Files whose process is gone are removed on the way.
        #
        # @return [Array<Found>] by PID
        def all
          trusted_directories.flat_map { |directory| sockets(directory) }.filter_map { |pid, path| look_at(pid, path) }
                             .uniq { |found| found.client.pid }.sort_by { |found| found.client.pid }
        end

        # @return [Hash{Integer => String}] the sockets there are, by PID; nobody is asked whether they answer
        def paths
          trusted_directories.flat_map { |directory| sockets(directory) }.reverse.to_h
        end

        # @param pid [Integer]
        # @return [Client]
        # @raise [ClientError] one line that says why there is none
        def find(pid)
          path = trusted_directories.map { |directory| File.join(directory, "#{pid}.sock") }.find { |file| socket?(file) }
          return Client.new(pid, path) if path && !stale?(path)

          raise ClientError, reason(pid)
        end

        # @return [Array<String>] directories that are there but not to be trusted, and why
        def faults
          existing.filter_map { |directory| Directory.fault(directory) }
        end

        # @return [String, nil] the command line of a process, as `ps` would show it
        def command_of(pid)
          words = File.binread("/proc/#{pid}/cmdline", 4096).to_s.split("\0")
          words.empty? ? nil : words.join(" ").force_encoding(Encoding::UTF_8).scrub("?").strip
        rescue SystemCallError
          nil
        end

        # @return [Boolean] whether it has ended, though its parent hasn't asked for its status yet; false where there is no /proc
        def ended?(pid)
          File.binread("/proc/#{pid}/stat").match?(/.*\) Z /mn)
        rescue SystemCallError
          false
        end

        private

        def existing
          Directory.candidates.select { |directory| File.symlink?(directory) || File.exist?(directory) }
        end

        def trusted_directories
          existing.reject { |directory| Directory.fault(directory) }
        end

        def sockets(directory)
          Dir.children(directory).filter_map do |name|
            pid = name[/\A([1-9]\d{0,9})\.sock\z/, 1]
            path = File.join(directory, name)
            [pid.to_i, path] if pid && socket?(path)
          end
        rescue SystemCallError
          []
        end

        # Ours, and no symbolic link to something else.
        def socket?(path)
          info = File.lstat(path)
          info.socket? && info.uid == Process.euid
        rescue SystemCallError
          false
        end

        def look_at(pid, path)
          return if stale?(path)

          client = Client.new(pid, path)
          ping = client.ping
          Found.new(client, ping, command_of(pid) || ping[:command])
        rescue ClientError => error
          Found.new(client, { error: error.message }, command_of(pid))
        end

        # Nobody listens behind it: it is removed, unless another file has taken its name meanwhile.
        def stale?(path)
          before = File.lstat(path)
          return false unless refused?(path)

          File.unlink(path) if File.lstat(path).ino == before.ino
          true
        rescue Errno::ENOENT
          true
        rescue SystemCallError
          false
        end

        def refused?(path)
          socket = Socket.new(:UNIX, :STREAM)
          socket.connect_nonblock(Socket.pack_sockaddr_un(path))
          false
        rescue Errno::ECONNREFUSED
          true
        rescue SystemCallError, IO::WaitWritable, ArgumentError
          false
        ensure
          socket&.close
        end

        def reason(pid)
          Process.kill(0, pid)
          return "process #{pid} has ended" if ended?(pid)

          fault = faults.first
          return "process #{pid} cannot be asked: #{fault}" if fault
          return "process #{pid} belongs to another user: ask as that user" if other_user?(pid)

          under = paths.keys.select { |each| under?(each, pid) }
          return "process #{pid} doesn't run Headway, but those under it do: #{under.sort.join(", ")}" if under.any?

          over = paths.keys.find { |each| under?(pid, each) }
          return single_threaded(pid, over) if over

          "process #{pid} doesn't run Headway (start it with headway run, or call Headway.start in it), or runs it with HEADWAY_CONTROL=0 or " \
            "another HEADWAY_CONTROL_DIR: headway top lists those that can be asked"
        rescue Errno::ESRCH, RangeError
          "there is no process #{pid}"
        rescue Errno::EPERM
          "process #{pid} belongs to another user: ask as that user"
        end

        # Of a forked process with one thread one can't tell from outside that it runs Headway.
        def single_threaded(pid, over)
          "process #{pid} has no socket: if it was forked by #{over}, which runs Headway, it gets one with its second thread or when it calls " \
            "Headway.start; if it is another program, start it with headway run"
        end

        # A parent is named after the command, which may have any bytes in it, and the state.
        def under?(pid, other)
          parent = File.binread("/proc/#{pid}/stat")[/.*\) \S (\d+)/mn, 1].to_i
          parent == other || (parent > 1 && under?(parent, other))
        rescue SystemCallError
          false
        end

        def other_user?(pid)
          File.stat("/proc/#{pid}").uid != Process.euid
        rescue SystemCallError
          false
        end
      end
    end
  end
end
