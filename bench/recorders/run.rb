# frozen_string_literal: true

# Usage: see bin/bench-recorder.

require "json"
require "optparse"
require "rbconfig"
require_relative "arms"
require_relative "../../lib/headway/cli"
require_relative "../../lib/headway/statistics"

WORKLOADS = %w[handovers saturated puma].freeze

# @return [Hash]
def settings_of(argv)
  settings = { runs: 3, seconds: 10.0, json: false, only: WORKLOADS }
  rest = OptionParser.new do |parser|
    parser.on("--runs N", Integer) { |number| settings[:runs] = number }
    parser.on("--seconds S", Float) { |number| settings[:seconds] = number }
    parser.on("--only LIST", Array, "some of #{WORKLOADS.join(",")}") { |names| settings[:only] = names }
    parser.on("--json") { settings[:json] = true }
  end.parse(argv)
  raise OptionParser::InvalidArgument, "#{rest.first} is not expected here" if rest.any?
  raise OptionParser::InvalidArgument, "--runs #{settings[:runs]}: give 1 or more" if settings[:runs] < 1
  strange = settings[:only] - WORKLOADS
  raise OptionParser::InvalidArgument, "--only #{strange.first}: give some of #{WORKLOADS.join(", ")}" if strange.any?
  raise OptionParser::InvalidArgument, "--seconds #{settings[:seconds]}: give more than 0" unless settings[:seconds].positive?

  settings
end

# The arms run side by side and work by turns of half a second: a machine that changes its pace does so for all alike. Who has no turn
# is idle; each is first as often as any other.
TURN_S = 0.5

# A program that is watched. In a group of its own a Ctrl-C at the terminal doesn't reach it: it ends when its input does, cleanly.
class Watched
  attr_reader :turns, :recorded

  def initialize(arm, workload)
    @name = "#{arm}, #{workload}"
    @io = IO.popen([RbConfig.ruby, "-Ilib", File.expand_path("program.rb", __dir__), arm, workload], "r+", pgroup: true)
    @turns = []
  end

  # Returns when it has started.
  def wait = answer

  def turn = @turns << ask(TURN_S)

  def stop
    @io.close_write
    @recorded = answer
    @io.close
  end

  # Whatever it is at.
  def close
    return if @io.closed?

    @io.close_write
    @io.read
    @io.close
  end

  def rounds = @turns.sum { |turn| turn["rounds"] }

  private

  def ask(seconds)
    @io.puts(seconds)
    answer
  rescue Errno::EPIPE
    answer
  end

  def answer = JSON.parse(@io.gets || abort("#{@name}: failed"))
end

# @return [Hash{String => Watched}] when all is done
def side_by_side(workload, turns)
  watched = {}
  Arms::ALL.each_key { |arm| watched[arm] = Watched.new(arm, workload) }
  watched.each_value(&:wait)
  turns.times { |turn| watched.values.rotate(turn).each(&:turn) }
  watched.each_value(&:stop)
ensure
  watched.each_value(&:close)
end

# @return [Hash{String => Hash{String => Array<Watched>}}] by workload and arm
def measure(settings, turns)
  settings[:only].to_h do |workload|
    runs = Array.new(settings[:runs]) do |run|
      warn "#{workload}, run #{run + 1} of #{settings[:runs]}: #{turns} turns of each"
      side_by_side(workload, turns)
    end
    [workload, Arms::ALL.keys.to_h { |arm| [arm, runs.map { |watched| watched[arm] }] }]
  end
end

def rounds(runs) = runs.flat_map { |run| run.turns.map { |turn| turn["rounds"] } }

def cpu_per_round(runs) = runs.flat_map { |run| run.turns.map { |turn| turn["cpu_s"] / turn["rounds"] } }

# Each turn is compared with the one beside it in which nobody watched.
def ratio(own, none) = Headway::Statistics.paired_ratio(own, none).to_h

# @return [Hash] what each arm costs, by workload
def table_of(results)
  results.transform_values do |arms|
    none = arms["nothing"]
    events = arms.values.flatten.filter_map { |run| run.recorded["events"]&.fdiv(run.rounds) }.max
    arms.to_h do |arm, runs|
      cpu = ratio(cpu_per_round(runs), cpu_per_round(none))
      bytes = runs.filter_map { |run| run.recorded["bytes"]&.fdiv(run.recorded["events"]) }
      [arm, { "version" => runs.first.recorded["version"],
              "throughput_ratio" => ratio(rounds(runs), rounds(none)),
              "cpu_ratio" => cpu,
              "ns_per_event" => (cpu[:ratio] - 1) * Headway::Statistics.median(cpu_per_round(none)) * 1e9 / events,
              "bytes_per_event" => bytes.empty? ? nil : bytes.max }]
    end
  end
end

def print_table(table, turns)
  cell = ->(figure) { format("%.3f (%.3f–%.3f)", *figure.values_at(:ratio, :low, :high)) }
  puts "Ruby #{RUBY_VERSION}, #{turns} turns of #{TURN_S} s; medians, each turn against the one beside it that nobody watched; " \
       "in brackets 95 % intervals"
  table.each do |workload, arms|
    puts "", format("%-17s %-19s %-20s %-20s %-12s %s", workload, "version", "throughput", "CPU time", "ns an event", "bytes an event")
    arms.each do |arm, row|
      next if arm == "nothing"

      puts format("%-17s %-19s %-20s %-20s %-12.0f %s", arm, row["version"], cell[row["throughput_ratio"]], cell[row["cpu_ratio"]],
                  row["ns_per_event"], row["bytes_per_event"]&.round(1) || "–")
    end
  end
end

status = Headway::CLI.guard("bench-recorder") do
  settings = settings_of(ARGV)
  turns = (settings[:seconds] / TURN_S).ceil
  table = table_of(measure(settings, turns))
  if settings[:json]
    puts JSON.pretty_generate("schema" => 2, "bench" => "recorder", "ruby" => RUBY_VERSION, "config" => settings, "workloads" => table)
  else
    print_table(table, settings[:runs] * turns)
  end
  0
end
exit status
