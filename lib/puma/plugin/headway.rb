# frozen_string_literal: true

# Puma's plugin: in config/puma.rb
#
#   plugin :headway
#   headway policy: :fair, quantum_ms: 50, log_interval: 60      # if something is to be otherwise than by default
#
# Options are those of Headway.start; recorder:, a Hash of those of Headway::Recorder.start; log_interval:, seconds between lines in
# Puma's log; autotune:, true or a Hash of those of Headway::Autotune.start and threads:, a range. Puma.stats and pumactl stats have headway_… of each worker.

require "puma" # pumactl, which reads the configuration too, has but parts of it
require "puma/plugin"
require "puma/dsl"
require "puma/server"
require "headway/base"
return if Headway::Copies.instead(__FILE__)

require "headway/puma"
require "headway/integrations/log" if Headway.supported?

Puma::Server.prepend(Headway::Puma::Server)
Headway::Puma::AcceptDelay.join(Puma)

module Puma
  class DSL
    # @raise [Headway::SettingError] that names the line of the configuration
    def headway(**options)
      Headway::Puma.configure(options, caller(1, 1))
    end
  end
end

Puma::Plugin.create do
  def start(launcher)
    Headway::Puma.start(launcher)
  end
end
