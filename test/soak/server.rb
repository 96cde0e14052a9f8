# frozen_string_literal: true

require "fileutils"
require "json"
require "net/http"
require "rbconfig"
require "servers/server_process"
require "stress/autopsy"
require "tmpdir"

module Soak
  ROOT = File.expand_path("../..", __dir__)

  # A server in a process group and a directory of its own.
  class Server
    BOOT = 90
    END_LIMIT = 60

    attr_reader :pid, :directory

    def initialize(*command, directory:, env: {})
      @directory = directory
      @log = File.join(directory, "server.log")
      env = { "HEADWAY_CONTROL_DIR" => File.join(directory, "control") }.merge(env)
      @pid = Process.spawn(env, RbConfig.ruby, *command, chdir: directory, out: [@log, "a"], err: %i[child out], in: File::NULL,
                                                         pgroup: true)
    end

    def output = File.exist?(@log) ? File.read(@log).scrub : ""
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def await(what, limit = BOOT)
      deadline = now + limit
      loop do
        value = yield and return value
        raise "#{what}: the server ended: #{@status}\n#{tail}" if ended?
        raise "#{what}: not within #{limit} s\n#{tail}" if now > deadline

        sleep 0.05
      end
    end

    def tail = output.lines.last(30).join

    def ended?
      @status ||= Process.wait2(@pid, Process::WNOHANG)&.last
      !@status.nil?
    end

    def signal(name, pid = @pid)
      Process.kill(name, pid)
    rescue Errno::ESRCH
      nil
    end

    # @return [String, nil] what is wrong with how it ended
    def await_end(limit = END_LIMIT)
      deadline = now + limit
      sleep 0.05 until ended? || now > deadline
      ended? ? (@status.success? ? nil : "it ended with #{@status}") : "it doesn't end: #{Stress::Autopsy.of_group(@pid)}"
    end

    # Whatever is left of it.
    def destroy
      left = Stress::Autopsy.group(@pid) - [@pid]
      Process.kill(:KILL, -@pid) rescue nil
      ended? || Process.wait(@pid) rescue nil
      left
    end

    # What Ruby says as it crashes, and what only our own faults say.
    def complaints
      output.lines.grep(/\[BUG\]|Segmentation|Assertion|core dump|stack smashing|malloc|corrupt|NoMethodError|deadlock|fatal \(/i)
    end
  end
end
