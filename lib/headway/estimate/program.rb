# frozen_string_literal: true

# Measures the work that `headway yield` was given, and prints one line of JSON: the result, or {"error": …}.
# Usage: program.rb '{"code": "sleep 0.001", "requires": [], "concurrency": [2, 4]}', or "file" instead of "code".

require "json"

settings = JSON.parse(ARGV.first)
ARGV.clear
answer = $stdout.dup # the work's own output, and that of what it starts, goes nowhere
parent = $stdin.dup
$stdin.reopen(File::NULL)
[$stdout, $stderr].each { |stream| stream.reopen(File::NULL, "w") }

require_relative "../estimate"
require_relative "source"

Thread.new do
  parent.read # until whoever wanted the answer has gone
  exit!(1)
end

result =
  begin
    block = Headway::Estimate::Source.new(settings).block
    options = settings.slice("concurrency", "measure", "processes", "run_s").transform_keys(&:to_sym)
    Headway::Estimate.call(block, **options).to_h
  rescue Headway::Estimate::Error => error
    { error: error.message }
  rescue SystemExit => error
    { error: "the work exits (status #{error.status}): leave out what ends the process" }
  rescue Interrupt, SignalException
    raise
  rescue Exception => error # whatever the work raises
    { error: "the work #{Headway::Estimate.describe(error)}" }
  end
answer.puts(JSON.generate(result))
answer.flush
exit!(0) # at_exit blocks of the work have nothing to do with its figures
