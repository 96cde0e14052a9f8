# frozen_string_literal: true

require "rbconfig"
require "tempfile"

module Harness
  # A fresh Ruby of the same version, with our load path, run to its end and
  # never waited for longer than its limit.
  class RubyProcess
    Result = Struct.new(:out, :err, :status, :timed_out) do
      def success? = !timed_out && status.success?
      def to_s = "#{timed_out ? "timed out" : status}\n--- out\n#{out}\n--- err\n#{err.gsub(LISTS, "")}"
    end

    # Of Ruby's report of a crash, hundreds of lines that would hide where it was: features, and the map of the memory.
    LISTS = /^\* (?:Loaded features|Process memory map):\n(?:\n| +\d+ .*\n|\h+-\h+ .*\n)*/

    # It has our gems without Bundler, unless it is told otherwise.
    ENVIRONMENT = {
      "BUNDLER_SETUP" => nil,
      "RUBYOPT" => [*ENV.fetch("RUBYOPT", "").split.grep_v(/bundler|gem_paths/), "-r#{File.join(__dir__, "gem_paths.rb")}"].join(" "),
      "GEM_PATHS_OF_TESTS" => ENV.fetch("GEM_PATHS_OF_TESTS") do # a test's own process has them from here
        $LOAD_PATH.select { |path| Gem.path.any? { |folder| path.start_with?("#{folder}/") } }.join(File::PATH_SEPARATOR)
      end
    }.freeze

    LIMIT = 60 # seconds
    GRACE = 10 # seconds a process has to die of the signal that makes Ruby report its state

    def self.run(...) = new(...).run

    # Runs a program given as text.
    def self.eval(code, *arguments, **options) = run("-e", code, *arguments, **options)

    # @param env [Hash] what differs from our environment and {ENVIRONMENT}
    # @param arguments [Array<String>] what follows our load path on Ruby's command line
    # @param pass [Hash] file descriptors to hand over, as Process.spawn takes them
    def initialize(*arguments, env: {}, limit: LIMIT, input: File::NULL, pass: {})
      @arguments = arguments
      @env = { **ENVIRONMENT, **env }
      @limit = limit * TimeLimit.seconds_scale
      @input = input
      @pass = pass
    end

    def run
      Tempfile.create("out") do |out|
        Tempfile.create("err") do |err|
          pid = Process.spawn(@env, *command, in: @input, out: out, err: err, **@pass)
          status, timed_out = wait(pid)
          Result.new(read(out), read(err), status, timed_out)
        end
      end
    end

    private

    def command
      root = File.expand_path("../..", __dir__)
      [RbConfig.ruby, "-I", File.join(root, "lib"), "-I", File.join(root, "test"), *@arguments]
    end

    def wait(pid)
      status = wait_until(pid, @limit) and return [status, false]

      Process.kill(:SEGV, pid) # Ruby answers with a report of where it is, even when no thread of it can run
      status = wait_until(pid, GRACE) and return [status, true]

      Process.kill(:KILL, pid)
      [Process.wait2(pid).last, true]
    end

    def wait_until(pid, seconds)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      loop do
        _, status = Process.wait2(pid, Process::WNOHANG)
        return status if status
        return if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

        sleep 0.01
      end
    end

    def read(file)
      file.rewind
      file.read.scrub
    end
  end
end
