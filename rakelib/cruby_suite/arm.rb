# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "shellwords"

module CRubySuite
  # One way to run the tests: stock, or with Headway in every Ruby they start.
  class Arm
    AUTOSTART = File.expand_path("../../lib/headway/autostart.rb", __dir__)
    LOGS = File.expand_path("../../tmp/cruby_suite/logs", __dir__)
    LIMIT = 1_500 # seconds
    RESUMES = 5 # of a run that some tests brought down
    STARTED = /^\[ *\d+\/\d+\] (\S+#[^\s=]+)/
    ENDED = /#{STARTED} = [\d.]+ s/
    FAILED = /^ +\d+\) (?:Failure|Error):\n(\S+#[^\s:]+)/

    attr_reader :name

    # @param environment [Hash, nil] Headway's settings; nil: stock Ruby
    def initialize(name, environment, directory)
      @name = name
      @environment = environment
      @directory = directory
      @runs = 0
    end

    # A test that takes the whole run down is failed, and the run is resumed without it and those that ended.
    #
    # @param only [Array<String>, nil] names of tests; nil: all
    # @param expected [Array<String>] names of tests that ought to be in the result
    # @return [Hash] test name => whether it passed (or was skipped); one that could not be run is not in it
    def run(files, only: nil, expected: [])
      results = attempt(files, only)
      RESUMES.times do
        left = expected - results.keys
        break if left.empty?

        results = attempt(files, left).merge(results)
      end
      results
    end

    private

    def attempt(files, only)
      names = ["-n", "/\\A(?:#{only.map { |name| Regexp.escape(name.delete('"')) }.join("|")})\\z/"] if only # shown "quoted" where not plain
      output = capture(["-I", "tool/lib", "test/runner.rb", "-v", "--tty=no", *names, *files]).scrub
      ended = output.scan(ENDED).flatten
      failed = output.scan(FAILED).flatten + (output.scan(STARTED).flatten - ended)
      (ended | failed).to_h { |name| [name, !failed.include?(name)] }
    end

    # What the tests said stays below tmp/, for whoever looks into a failure.
    def capture(arguments)
      FileUtils.mkdir_p(LOGS)
      path = File.join(LOGS, "#{RUBY_VERSION}-#{name}-#{@runs += 1}.log")
      File.open(path, "w+") do |log|
        pid = Process.spawn(environment, RbConfig.ruby, *arguments, chdir: @directory, in: File::NULL, out: log, err: %i[child out], pgroup: true)
        end_after_limit(pid)
        log.rewind
        log.read
      end
    end

    # The tests run in a process group of their own, with all they start.
    def end_after_limit(pid)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + LIMIT
      until Process.wait(pid, Process::WNOHANG)
        if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
          warn "cruby_suite: #{name} does not end; it is killed"
          Process.kill(:KILL, -pid)
          Process.wait(pid)
          break
        end
        sleep 0.2
      end
    end

    # Nothing of Bundler's: the tests are CRuby's alone.
    def environment
      clean = ENV.keys.grep(/\A(?:BUNDLE|BUNDLER|RUBY|HEADWAY)/).to_h { |key| [key, nil] }
      return clean.merge("HEADWAY" => "0") unless @environment

      clean.merge("RUBYOPT" => "-r#{Shellwords.escape(AUTOSTART)}", **@environment)
    end
  end
end
