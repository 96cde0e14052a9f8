# frozen_string_literal: true

require "harness/ruby_process"
require "harness/time_limit"

module Harness
  # One test method in a process of its own: the parent's side.
  class IsolatedRun
    CHILD = File.expand_path("isolated_child.rb", __dir__)
    GRACE = 5 # seconds for the child to end itself, with backtraces, before we do

    def initialize(test_class, name, limit:)
      @test_class = test_class
      @name = name
      @limit = limit
    end

    # @return [Minitest::Result] the child's own, or a failure that says how the child ended
    def result
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      reader, writer = IO.pipe.each(&:binmode)
      run = RubyProcess.run(*@test_class.ruby_options, CHILD, @test_class.file, @test_class.name, @name, writer.fileno.to_s,
                            env: { "HEADWAY_TEST_CHILD" => "1", **@test_class.env },
                            limit: @limit + GRACE, pass: { writer.fileno => writer.fileno })
      writer.close
      judge(run, reader.read, Process.clock_gettime(Process::CLOCK_MONOTONIC) - started)
    ensure
      [reader, writer].each { |io| io&.close }
    end

    private

    def judge(run, report, seconds)
      result = report.empty? ? failed("ended without a result") : Marshal.load(report)
      result.time = seconds
      if report.empty? || !run.success?
        result.failures << Minitest::Assertion.new("the test's process: #{run}")
      elsif !result.passed? && !result.skipped?
        result.failures.first.message << "\n#{run}"
      end
      result
    end

    def failed(reason)
      test = @test_class.new(@name)
      test.failures << Minitest::Assertion.new(reason)
      Minitest::Result.from(test)
    end
  end
end
