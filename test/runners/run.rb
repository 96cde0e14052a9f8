# frozen_string_literal: true

require "headway"
require_relative "active_jobs"
require_relative "consumers"
require_relative "instruments"
require_relative "libraries"

# What bin/smoke runs: each runner in turn; its status is 0 when all of them worked.
JOB_RUNNERS = { "good_job" => GoodJob, "solid_queue" => SolidQueue, "karafka" => Karafka, "shoryuken" => Shoryuken }.freeze
LIBRARIES = Libraries.names.to_h { |name| [name, -> { Libraries.call([name]) }] }.freeze
RUNNERS = { **JOB_RUNNERS, "instruments" => Instruments, "libraries" => Libraries, **LIBRARIES }.freeze
names = ARGV.empty? ? RUNNERS.keys - Libraries.names : ARGV
unknown = (names - RUNNERS.keys).first
if unknown
  warn "smoke: #{unknown.inspect} is no runner here: give some of #{RUNNERS.keys.join(", ")}"
  exit 2
end

failed = names.reject do |name|
  version = " #{Gem::Specification.find_by_name(name).version}" if JOB_RUNNERS.key?(name)
  versions = "#{name}#{version}, Ruby #{RUBY_VERSION}"
  puts "#{versions}: #{RUNNERS[name].call}"
  true
rescue StandardError => error
  puts "#{versions}: FAILED: #{error.message.lines.first(60).join}"
  false
end
exit failed.empty?
