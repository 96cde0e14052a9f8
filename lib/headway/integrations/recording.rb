# frozen_string_literal: true

require_relative "../notices"

module Headway
  module Integrations
    # The recorder that an application's configuration asks for.
    module Recording
      class << self
        # Leaves a recording alone that `headway run --record` or `--report` has begun: whoever asked for that wants all of it.
        #
        # @param options [Hash] what {Recorder.start} takes
        # @return [void]
        def start(options)
          return Recorder.start(**options) unless commanded?

          Notices.add("the configuration's recorder is left out: headway run records everything, to #{Recorder.stats[:file]}")
        end

        # @return [void]
        def stop
          Recorder.finish unless commanded?
        end

        private

        def commanded?
          ENV.key?("HEADWAY_RECORD") && Recorder.stats[:mode] == :stream
        end
      end
    end
  end
end
