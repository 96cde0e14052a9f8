# frozen_string_literal: true

require_relative "predict"

module Headway
  # The setting to run a recorded workload with: simulates the likely ones and chooses.
  module Advise
    autoload :Slo, File.expand_path("advise/slo", __dir__)
    autoload :Candidates, File.expand_path("advise/candidates", __dir__)
    autoload :Choice, File.expand_path("advise/choice", __dir__)
    autoload :Changes, File.expand_path("advise/changes", __dir__)
    autoload :Document, File.expand_path("advise/document", __dir__)
  end
end
