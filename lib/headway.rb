# frozen_string_literal: true

require "rbconfig"

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

  autoload :Trace, File.expand_path("headway/trace", __dir__)
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
end
