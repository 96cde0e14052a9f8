# frozen_string_literal: true

require "test_helper"
require "headway"
require "offload/trap_scenarios"

# What goes wrong with naive pools, and doesn't with ours. Ruby 3.3 has no blocking_operation_wait and none of these traps.
class OffloadTrapsTest < Minitest::Test
  TRIES = 20 # of the worst of them one in four goes well
  # What Ruby 4.0 made of three of them: it calls what was dropped itself, and no longer what was given up; and who leaves crashes rarely.
  MENDED = RUBY_VERSION >= "4.0" ? %i[nothing_is_dropped what_was_given_up_never_runs nobody_leaves_while_it_runs] : []
  NAIVE_PROGRAM = <<~RUBY
    require "offload/trap_scenarios"
    Thread.report_on_exception = false
    Thread.new { sleep 1; $stderr.puts "hangs"; exit!(3) }
    name = ARGV[0].to_sym
    begin
      TrapScenarios.new(TrapScenarios::NAIVE[name]).public_send(name)
    rescue Exception => error
      $stderr.puts error.class, error.message.lines.first
      exit!(2)
    end
    exit!(0)
  RUBY

  if RUBY_VERSION >= "3.4"
    TrapScenarios.names.each do |name|
      define_method("test_#{name}") do
        TrapScenarios.new(Headway::OffloadPool).public_send(name)
        pass
      end

      next if MENDED.include?(name)

      # What is undefined may go well now and then, the more so on a busy machine.
      define_method("test_#{name}_fails_with_a_naive_pool") do
        Dir.mktmpdir do |directory| # which they end in without a chance to tidy up
          run = -> { Harness::RubyProcess.eval(NAIVE_PROGRAM, name.to_s, env: { "TMPDIR" => directory }, limit: 20) }
          assert TRIES.times.any? { !run.call.success? }, "a naive pool passes"
        end
      end
    end
  end
end
