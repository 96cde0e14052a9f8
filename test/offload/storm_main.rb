# frozen_string_literal: true

# bin/stress --offload: storms of raises, kills and timeouts against an offload pool, for as many attacks as one likes.

require "optparse"
require_relative "storm"

count = 10_000
seed = Random.new_seed % 1_000_000
kinds = OffloadStorm::KINDS
parser = OptionParser.new do |options|
  options.banner = "Usage: bin/stress --offload [options]"
  options.on("--count N", Integer, "attacks in each kind of storm (10000)") { |value| count = value }
  options.on("--seed N", Integer, "of each storm (random)") { |value| seed = value }
  options.on("--kind K", OffloadStorm::KINDS, "#{OffloadStorm::KINDS.join("|")} (all)") { |value| kinds = [value] }
end

begin
  parser.parse!
  raise OptionParser::InvalidArgument, ARGV.first unless ARGV.empty?
  raise OptionParser::InvalidArgument, "--count #{count}: give a whole number from 1" unless count.positive?
rescue OptionParser::ParseError => error
  warn "stress: #{error.message}"
  exit 2
end

STALL = 60 # seconds without progress
progress = 0
Thread.new do
  loop do
    before = progress
    sleep STALL
    next unless progress == before

    warn "stress: no progress in #{STALL} s after #{progress} attacks", *Thread.list.map { |thread| [thread.inspect, *thread.backtrace] }
    exit!(3)
  end
end

failed = false
kinds.each do |kind|
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  result = OffloadStorm.run(kind, count:, seed:) { progress += 1 }
  seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
  puts "offload #{kind}: #{result[:attacks]} attacks in #{seconds.round} s, seed #{seed}, Ruby #{RUBY_VERSION}: #{result[:outcomes]} #{result[:stats]}"
rescue OffloadStorm::Failed => error
  failed = true
  warn "offload #{kind}: FAILED, seed #{seed}, Ruby #{RUBY_VERSION}", error.message
end
exit(!failed)
