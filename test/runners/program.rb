# frozen_string_literal: true

require "json"
require "rbconfig"

# A process that bin/smoke starts, its output in a file, and ends whatever happens.
class Program
  ROOT = File.expand_path("../..", __dir__)
  LIMIT = 120 # seconds for anything to happen

  # @return [String] what a command printed
  def self.finish(*command, **options)
    program = new(*command, **options)
    program.await("the end") { program.ended? }
    program.status.success? ? program.output : raise("#{command.join(" ")} failed\n#{program.output}")
  ensure
    program&.kill
  end

  attr_reader :status

  def initialize(*command, directory:, env: {}, uid: nil)
    @log = File.join(directory, "log-#{object_id}")
    command = ["setpriv", "--reuid=#{uid}", "--regid=#{uid}", "--clear-groups", *command] if uid
    @pid = Process.spawn(env, *command, chdir: directory, out: @log, err: %i[child out], in: File::NULL, pgroup: true)
  end

  def output = File.read(@log).scrub

  def ended?
    @status ||= Process.wait2(@pid, Process::WNOHANG)&.last
    !@status.nil?
  end

  def await(what)
    deadline = now + LIMIT
    until (value = yield)
      raise "#{what}: ended with #{@status}\n#{output}" if ended?
      raise "#{what}: not within #{LIMIT} s\n#{output}" if now > deadline

      sleep 0.05
    end
    value
  end

  def stop(signal = :TERM)
    Process.kill(signal, @pid) unless ended?
    deadline = now + LIMIT
    sleep 0.05 until ended? || now > deadline
    @status
  end

  # With what it started.
  def kill
    Process.kill(:KILL, -@pid)
    @status ||= Process.wait2(@pid).last
  rescue Errno::ESRCH
    nil
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
