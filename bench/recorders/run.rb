# frozen_string_literal: true

# Usage: see bin/bench-recorder.

require "json"
require "open3"
require "optparse"
require "rbconfig"
require_relative "arms"

settings = { runs: 5, seconds: 2.0, json: false }
begin
  OptionParser.new do |parser|
    parser.on("--runs N", Integer) { |number| settings[:runs] = number }
    parser.on("--seconds S", Float) { |number| settings[:seconds] = number }
    parser.on("--json") { settings[:json] = true }
  end.parse!
  raise OptionParser::InvalidArgument, "--runs #{settings[:runs]}: give 1 or more" if settings[:runs] < 1
  raise OptionParser::InvalidArgument, "--seconds #{settings[:seconds]}: give more than 0" unless settings[:seconds].positive?
rescue OptionParser::ParseError => e
  warn "bench-recorder: #{e.message}"
  exit 2
end

def figures(arm, workload, seconds)
  command = [RbConfig.ruby, "-Ilib", File.expand_path("program.rb", __dir__), arm, workload, seconds.to_s]
  out, status = Open3.capture2(*command, err: $stderr)
  status.success? ? JSON.parse(out.lines.last) : abort("#{arm}, #{workload}: failed")
end

def summary(values)
  sorted = values.compact.sort
  sorted.empty? ? nil : { "median" => sorted[sorted.size / 2], "min" => sorted.first, "max" => sorted.last, "n" => sorted.size }
end

results = Hash.new { |hash, workload| hash[workload] = Hash.new { |arms, arm| arms[arm] = [] } }
%w[handovers saturated puma].each do |workload|
  settings[:runs].times do |run|
    Arms::ALL.each_key do |arm|
      warn "#{workload}, run #{run + 1}: #{arm}"
      results[workload][arm] << figures(arm, workload, settings[:seconds])
    end
  end
end

# Each run is compared with that of the same turn in which nobody watched: machines change their pace.
table = results.transform_values do |arms|
  events = arms.values.flatten.filter_map { |run| run["events_per_round"] }.max
  arms.to_h do |arm, runs|
    pairs = runs.zip(arms["nothing"])
    [arm, { "version" => runs.first["version"],
            "throughput_ratio" => summary(pairs.map { |run, none| run["rounds_per_s"] / none["rounds_per_s"] }),
            "cpu_ratio" => summary(pairs.map { |run, none| run["cpu_us_per_round"] / none["cpu_us_per_round"] }),
            "ns_per_event" => summary(pairs.map { |run, none| (run["cpu_us_per_round"] - none["cpu_us_per_round"]) * 1000 / events }),
            "bytes_per_event" => summary(runs.map { |run| run["bytes_per_event"] }) }]
  end
end

if settings[:json]
  puts JSON.pretty_generate("schema" => 1, "bench" => "recorder", "ruby" => RUBY_VERSION, "config" => settings, "workloads" => table)
  exit
end

cell = lambda do |figure, digits|
  next "–" unless figure

  format("%.#{digits}f (%.#{digits}f–%.#{digits}f)", *figure.values_at("median", "min", "max"))
end
puts "Ruby #{RUBY_VERSION}, #{settings[:runs]} runs of #{settings[:seconds]} s; medians (least–most), each against nobody watching"
table.each do |workload, arms|
  puts "", format("%-17s %-19s %-20s %-20s %-20s %s", workload, "version", "throughput", "CPU time", "ns an event", "bytes an event")
  arms.each do |arm, row|
    next if arm == "nothing"

    puts format("%-17s %-19s %-20s %-20s %-20s %s", arm, row["version"], cell[row["throughput_ratio"], 3], cell[row["cpu_ratio"], 3],
                cell[row["ns_per_event"], 0], cell[row["bytes_per_event"], 1])
  end
end
