# frozen_string_literal: true

require "rbconfig"

# Autostart may have loaded Copies, and gone no further.
return if defined?(Headway::Copies) && (Headway::Copies.instead(__FILE__) || Headway.respond_to?(:start))

require_relative "version"
require_relative "copies"
require_relative "platform"
require_relative "settings"

# Keeps every Ruby thread moving: a thread that wakes from I/O gets the GVL within microseconds, however many threads compute.
#
#   require "headway"
#   Headway.start
#
# On a Ruby that Headway does not support every method is there and does nothing; {start} says once why.
module Headway
  class Error < StandardError; end

  autoload :Estimate, File.expand_path("estimate", __dir__)
  autoload :Metrics, File.expand_path("metrics", __dir__)
  autoload :Trace, File.expand_path("trace", __dir__)
  autoload :FiberScheduler, File.expand_path("fiber_scheduler", __dir__)
  autoload :Work, File.expand_path("work", __dir__)
  autoload :Rack, File.expand_path("rack", __dir__)
  autoload :Sidekiq, File.expand_path("sidekiq", __dir__)
  autoload :Web, File.expand_path("web", __dir__)
  autoload :Workload, File.expand_path("workload", __dir__)

  if Platform.reason.nil?
    # As bin/setup or RubyGems made it. By the load path, where another copy's may be found, only if RubyGems keeps it apart.
    made = [RbConfig::CONFIG["ruby_version"][/\d+\.\d+/], "."]
           .map { |directory| File.expand_path("#{directory}/headway.#{RbConfig::CONFIG["DLEXT"]}", __dir__) }
    begin
      require made.find { |file| File.exist?(file) } || "headway/headway"
    rescue LoadError => error
      Platform.extension_missing(error)
    end
  end
  # Not at their first use: nothing is loaded in a signal handler.
  require_relative supported? ? "autotune/switch" : "inert/autotune"
  require_relative supported? ? "offload_pool" : "inert/offload_pool"
  require_relative supported? ? "face" : "inert"

  # Adds config.headway to Rails, where there is one.
  # @return [void]
  def self.join_rails
    require_relative "rails" if defined?(::Rails::Railtie)
  end
end
