# frozen_string_literal: true

# Loaded by every test file. What it adds to minitest is strictness: a warning
# about a file of ours raises, a thread left behind fails its test, a test that
# outlives its time limit prints every thread's backtrace and ends the run, and
# Headway is stopped after each test.

$VERBOSE = true

root = File.expand_path("..", __dir__)
[File.join(root, "test"), File.join(root, "lib")].each do |path|
  $LOAD_PATH.unshift(path) unless $LOAD_PATH.include?(path)
end

require "minitest"
require "harness/strict_warnings"
require "harness/strict_lifecycle"
require "harness/ruby_process"

Warning.extend(Harness::StrictWarnings.new(root))
Minitest::Test.prepend(Harness::StrictLifecycle)
GC.auto_compact = true if GC.respond_to?(:auto_compact=)

Minitest.autorun unless ENV["HEADWAY_TEST_CHILD"]
