# frozen_string_literal: true

require "fileutils"
require_relative "arm"
require_relative "source"

module CRubySuite
  # CRuby's tests of fiber schedulers, with Headway::FiberScheduler in place of the scheduler they come with.
  class FiberSuite
    SCHEDULER = File.expand_path("fiber_scheduler.rb", __dir__)
    LIBRARY = File.expand_path("../../lib", __dir__)

    # Loads nothing of Headway into the test runner but what the tests ask for.
    class FiberArm < Arm
      private

      def environment = super.merge("RUBYLIB" => [LIBRARY, *io_event].join(File::PATH_SEPARATOR))

      def io_event = Gem::Specification.find_by_name("io-event").full_require_paths
    end

    # @return [Boolean] whether every test passed
    def run
      directory = prepare(Source.new.directory)
      files = Dir["test/fiber/test_*.rb", base: directory].sort
      results = FiberArm.new(:fiber_scheduler, nil, directory).run(files)
      failed = results.reject { |_, passed| passed }.keys
      puts "CRuby's tests of fiber schedulers, Ruby #{RUBY_VERSION}: #{results.size - failed.size} of #{results.size} pass", *failed
      results.any? && failed.empty?
    rescue Apt::Error => error
      abort "cruby_suite: #{error.message}"
    end

    private

    # A copy of the tests beside the rest of the suite: they load the scheduler from their own folder.
    def prepare(source)
      target = "#{source.sub(/ruby-(?=[^\/]+\z)/, "fiber-")}"
      FileUtils.rm_rf(target)
      FileUtils.mkdir_p(File.join(target, "test"))
      FileUtils.ln_s(File.join(source, "tool"), target)
      FileUtils.cp(File.join(source, "test/runner.rb"), File.join(target, "test"))
      FileUtils.cp_r(File.join(source, "test/fiber"), File.join(target, "test"))
      FileUtils.cp(SCHEDULER, File.join(target, "test/fiber/scheduler.rb"))
      target
    end
  end
end
