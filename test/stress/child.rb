# frozen_string_literal: true

# One stressed process. Argument: its directory, with the plan in it.

require_relative "plan"
require_relative "run"

directory = ARGV.fetch(0)
plan = Marshal.load(File.binread(File.join(directory, "plan")))
$stdout.sync = $stderr.sync = true
GC.auto_compact = true if plan.auto_compact && GC.respond_to?(:auto_compact=)

Stress::Run.new(plan, directory).play
