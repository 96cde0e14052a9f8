# frozen_string_literal: true

# bin/stress: the parent, which runs on stock Ruby and does nothing but start, watch and judge processes.

require_relative "options"
require_relative "campaign"

begin
  options = Stress::Options.parse(ARGV)
  exit(options ? Stress::Campaign.new(options).run : true)
rescue Stress::Options::Invalid => error
  warn "stress: #{error.message}"
  exit 2
rescue Interrupt
  exit 130
end
