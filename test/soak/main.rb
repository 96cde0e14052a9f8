# frozen_string_literal: true

# bin/soak: what drives, watches and judges the servers, on stock Ruby itself.

$stdout.sync = true
$LOAD_PATH.unshift(File.expand_path("..", __dir__))
require "soak/options"
require "soak/churn"
require "soak/falcon" if Gem.loaded_specs["falcon"] # from Ruby 3.4 on
require "soak/puma"
require "soak/sidekiq"

module Soak
  PARTS = {
    "preload" => ->(seconds, options) { Puma.new("preload", seconds, options).run },
    "phased" => ->(seconds, options) { Puma.new("phased", seconds, options).run },
    "fork_worker" => ->(seconds, options) { Puma.new("fork_worker", seconds, options).run },
    "sidekiq" => ->(seconds, options) { Sidekiq.new(seconds, options).run },
    "falcon" => ->(seconds, options) { Falcon.new(seconds, options).run },
    "churn" => ->(seconds, options) { Churn.new(seconds, options).run }
  }.select { |name,| name != "falcon" || defined?(Falcon) }.freeze
end

begin
  options = Soak::Options.parse(ARGV, Soak::PARTS.keys) or exit
  seconds = options.minutes * 60 / options.parts.size
  puts "soak: seed #{options.seed}"
  lost = options.parts.reject { |part| Soak::PARTS.fetch(part).call(seconds, options) }
  abort "soak: something went lost in #{lost.join(", ")}: see above" if lost.any?
rescue OptionParser::ParseError => error
  warn "soak: #{error.message}"
  exit 2
rescue Interrupt
  exit 130
end
