# frozen_string_literal: true

require "rbconfig"

# Loaded already, by `headway run`, when there was no Rails yet; maybe from another copy of the gem, which stays in force.
if defined?(Headway) && Headway.respond_to?(:join_rails)
  Headway.join_rails
  return
end

require_relative "headway/version"
require_relative "headway/platform"
require_relative "headway/settings"

# Keeps every Ruby thread moving: a thread that wakes from I/O gets the GVL within microseconds, however many threads compute.
#
#   require "headway"
#   Headway.start
#
# On a Ruby that Headway does not support every method is there and does nothing; {start} says once why.
module Headway
  class Error < StandardError; end

  autoload :Autotune, File.expand_path("headway/autotune", __dir__)
  autoload :Estimate, File.expand_path("headway/estimate", __dir__)
  autoload :Metrics, File.expand_path("headway/metrics", __dir__)
  autoload :Trace, File.expand_path("headway/trace", __dir__)
  autoload :FiberScheduler, File.expand_path("headway/fiber_scheduler", __dir__)
  autoload :OffloadPool, File.expand_path("headway/offload_pool", __dir__)
  autoload :Work, File.expand_path("headway/work", __dir__)
  autoload :Rack, File.expand_path("headway/rack", __dir__)
  autoload :Sidekiq, File.expand_path("headway/sidekiq", __dir__)
  autoload :Web, File.expand_path("headway/web", __dir__)
  autoload :Workload, File.expand_path("headway/workload", __dir__)

  if Platform.reason.nil?
    begin
      require_relative "headway/#{RbConfig::CONFIG["ruby_version"][/\d+\.\d+/]}/headway"
    rescue LoadError
      begin
        require "headway/headway"
      rescue LoadError => error
        Platform.extension_missing(error)
      end
    end
  end
  require_relative supported? ? "headway/face" : "headway/inert"

  # Adds config.headway to Rails, where there is one.
  # @return [void]
  def self.join_rails
    require_relative "headway/rails" if defined?(::Rails::Railtie)
  end
  join_rails
end
