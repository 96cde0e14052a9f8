# frozen_string_literal: true

require "test_helper"
require "harness/isolated_run"

module Harness
  # A test class whose tests each run in a Ruby process of their own: what they
  # do to the VM harms no other test, a crash is a failure like any other, and
  # the process must also exit cleanly after the test.
  class IsolatedTest < Minitest::Test
    class << self
      attr_reader :file

      def inherited(subclass)
        super
        file = caller_locations.map(&:absolute_path).compact.find { |path| path.end_with?("_test.rb") }
        subclass.instance_variable_set(:@file, file)
      end

      # Environment of this class's processes.
      def env(variables = nil)
        @env = variables if variables
        @env || {}
      end

      # For tests of gems that ask RubyGems for something: to load it takes as long as all else a process needs to start.
      def with_rubygems = @with_rubygems = true

      def ruby_options = @with_rubygems ? [] : ["--disable=gems"]
    end

    def run
      return super if ENV["HEADWAY_TEST_CHILD"]

      IsolatedRun.new(self.class, name, limit: time_limit).result
    end
  end
end
