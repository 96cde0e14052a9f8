# frozen_string_literal: true

require "headway"
require_relative "active_jobs"
require_relative "consumers"
require_relative "instruments"

# What bin/smoke runs: each runner in turn; its status is 0 when all of them worked.
RUNNERS = { "good_job" => GoodJob, "solid_queue" => SolidQueue, "karafka" => Karafka, "shoryuken" => Shoryuken,
            "instruments" => Instruments }.freeze
names = ARGV.empty? ? RUNNERS.keys : ARGV
unknown = (names - RUNNERS.keys).first
if unknown
  warn "smoke: #{unknown.inspect} is no runner here: give some of #{RUNNERS.keys.join(", ")}"
  exit 2
end

failed = names.reject do |name|
  versions = "#{name}#{" #{Gem::Specification.find_by_name(name).version}" if name != "instruments"}, Ruby #{RUBY_VERSION}"
  puts "#{versions}: #{RUNNERS[name].call}"
  true
rescue StandardError => error
  puts "#{versions}: FAILED: #{error.message.lines.first(12).join}"
  false
end
exit failed.empty?
