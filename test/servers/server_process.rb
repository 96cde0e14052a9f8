# frozen_string_literal: true

require "net/http"
require "rbconfig"
require "socket"
require "tmpdir"

module Harness
  # A real server in a process of its own, its output in a file, started and stopped by a test.
  class ServerProcess
    LIMIT = 40 # seconds for anything to happen
    ROOT = File.expand_path("../..", __dir__)

    # A port for a server that can't choose one itself. It is below those that the system gives to whoever asks for any, and stays
    # bound by us: who asks as we do, without SO_REUSEADDR, finds it taken, and a server, which sets that, may listen there.
    def self.free_port
      own = Random.new # not the one that the tests' seed goes with: another run may have the same
      loop do
        socket = Socket.new(:INET, :STREAM)
        socket.bind(Addrinfo.tcp("127.0.0.1", own.rand(10_000...[system_ports_from, 30_000].min)))
        socket.setsockopt(:SOCKET, :REUSEADDR, true)
        (@held ||= []) << socket
        return socket.local_address.ip_port
      rescue Errno::EADDRINUSE, Errno::EACCES
        socket.close
      end
    end

    def self.system_ports_from
      path = "/proc/sys/net/ipv4/ip_local_port_range"
      File.readable?(path) ? [File.read(path).to_i, 10_100].max : 30_000
    end
    private_class_method :system_ports_from

    # @return [Array<String>] what starts Redis (apt-get install redis-server, or REDIS_SERVER=path), with `program: true`
    def self.redis(port, directory)
      [ENV.fetch("REDIS_SERVER", "redis-server"), "--port", port.to_s, "--bind", "127.0.0.1", "--save", "", "--dir", directory]
    end

    attr_reader :pid

    # @param command [Array<String>] what follows our load path on Ruby's command line; or, program: true, a program
    def initialize(*command, directory: Dir.pwd, env: {}, program: false)
      @log = File.join(directory, "server-#{object_id}.log")
      command = [RbConfig.ruby, "-I", File.join(ROOT, "lib"), *command] unless program
      @pid = Process.spawn(env, *command, chdir: directory, out: @log, err: %i[child out], in: File::NULL)
    end

    def output = File.exist?(@log) ? File.read(@log).scrub : ""

    # Waits until the block is true, or the limit; the block's value.
    def await(what)
      deadline = now + LIMIT * TimeLimit.seconds_scale
      loop do
        value = yield
        return value if value
        raise "#{what}: the server ended: #{@status}\n#{output}" if ended?
        raise "#{what}: not within #{LIMIT} s\n#{output}" if now > deadline

        sleep 0.02
      end
    end

    def await_output(pattern) = await(pattern.inspect) { output[pattern] }

    def signal(name) = Process.kill(name, @pid)

    # Puma, told by a signal, doesn't always end, with or without Headway: Ruby 3.3 and 3.4 may hang when an IO is closed that the
    # main thread's trap handler writes to. Its tests don't wait for that.
    #
    # @param pid [Integer] whom to tell, where what was started waits for the server's own process
    # @return [Process::Status]
    def stop(signal = :TERM, pid: @pid)
      return @status if ended?

      Process.kill(signal, pid)
      deadline = now + 10 * TimeLimit.seconds_scale
      sleep 0.02 until ended? || now > deadline
      begin
        Process.kill(:KILL, pid) unless ended?
      rescue Errno::ESRCH
        nil # what waits for it takes its time
      end
      await("the end") { ended? }
      @status
    end

    def ended?
      @status ||= Process.wait2(@pid, Process::WNOHANG)&.last
      !@status.nil?
    end

    # Waits for the end of a process that should not live.
    def wait
      deadline = now + LIMIT * TimeLimit.seconds_scale
      sleep 0.02 until ended? || now > deadline
      stop
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # For a test that talks to real servers.
  module Serving
    def setup
      super
      @directory = File.realpath(Dir.mktmpdir("headway-servers"))
      @servers = []
    end

    def teardown
      @servers.each { |server| server.stop(:KILL) } # Puma's workers notice
      FileUtils.rm_rf(@directory)
      super
    end

    def write(name, text)
      path = File.join(@directory, name)
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, text)
      path
    end

    # What another process writes line by line: the last one may be on its way.
    def whole_lines(path) = File.exist?(path) ? File.readlines(path).grep(/\n\z/) : []

    def serve(*command, **options)
      ServerProcess.new(*command, directory: @directory, **options).tap { |server| @servers << server }
    end

    def get(port, path = "/") = Net::HTTP.start("127.0.0.1", port, read_timeout: 20 * TimeLimit.seconds_scale) { |http| http.get(path) }

    def gem_program(gem, name = gem) = Gem.bin_path(gem, name)
  end
end
