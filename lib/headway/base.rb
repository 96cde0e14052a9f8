# frozen_string_literal: true

require "rbconfig"

# Loaded already, from another copy of the gem by `headway run`, which stays in force.
return if defined?(Headway) && Headway.respond_to?(:join_rails)

require_relative "version"
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
    begin
      require_relative "#{RbConfig::CONFIG["ruby_version"][/\d+\.\d+/]}/headway"
    rescue LoadError
      begin
        require "headway/headway"
      rescue LoadError => error
        Platform.extension_missing(error)
      end
    end
  end
  autoload :Autotune, File.expand_path(supported? ? "autotune" : "inert/autotune", __dir__)
  require_relative supported? ? "offload_pool" : "inert/offload_pool" # not at its first use: nothing is loaded in a signal handler
  require_relative supported? ? "face" : "inert"

  # Adds config.headway to Rails, where there is one.
  # @return [void]
  def self.join_rails
    require_relative "rails" if defined?(::Rails::Railtie)
  end
end
