# frozen_string_literal: true

require "etc"
require "servers/server_process"

module Harness
  # A PostgreSQL of the test's own on loopback (apt-get install postgresql, or POSTGRES_BIN=folder of its programs), with a new
  # cluster. It refuses to run as root; for root it runs as nobody.
  class Postgres
    USER = "headway"

    attr_reader :port

    # @param serving [Serving] a test, which ends it
    def initialize(serving, directory)
      @data = File.join(directory, "postgres")
      @port = ServerProcess.free_port
      make_cluster(directory)
      @server = serving.serve(*unprivileged, program("postgres"), "-D", @data, "-p", @port.to_s, "-F", "-c", "listen_addresses=127.0.0.1",
                              "-c", "unix_socket_directories=", "-c", "max_connections=60", program: true)
      @server.await_output(/ready to accept connections/)
    end

    def settings = { host: "127.0.0.1", port: @port, user: USER, dbname: "postgres" }

    private

    def make_cluster(directory)
      Dir.mkdir(@data)
      if unprivileged.any?
        File.chmod(0o711, directory)
        File.chown(nobody.uid, nobody.gid, @data)
      end
      log = IO.popen([*unprivileged, program("initdb"), "-D", @data, "-U", USER, "-A", "trust", "-N", "-E", "UTF8", "--no-locale"],
                     chdir: "/", err: %i[child out], &:read)
      raise "initdb failed:\n#{log}" unless $?.success?
    end

    def unprivileged = Process.uid.zero? ? ["setpriv", "--reuid=#{nobody.uid}", "--regid=#{nobody.gid}", "--clear-groups"] : []

    def nobody = @nobody ||= Etc.getpwnam("nobody")

    def program(name)
      folders = [ENV.fetch("POSTGRES_BIN", nil), *ENV.fetch("PATH", "").split(File::PATH_SEPARATOR), *Dir["/usr/lib/postgresql/*/bin"]]
      folders.compact.map { |folder| File.join(folder, name) }.find { |path| File.executable?(path) } ||
        raise("no #{name} here: apt-get install postgresql, or POSTGRES_BIN=folder of its programs")
    end
  end
end
