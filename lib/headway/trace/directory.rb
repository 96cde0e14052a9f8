# frozen_string_literal: true

module Headway
  class Trace
    # The traces in a directory, which many processes and machines wrote or were copied to.
    module Directory
      # Where it is recorded, files end so unless told otherwise.
      TRACES = "**/*.headway"
      private_constant :TRACES

      # @param path [String]
      # @yieldparam file [String] one of which nothing can be read
      # @yieldparam why [String]
      # @return [Array<String>] the others, in the order of their names; those in directories inside it, too
      def self.files(path)
        Dir.glob(TRACES, base: path).sort.map { |name| File.join(path, name) }.select do |file|
          why = Trace.fault(file)
          yield file, why if why
          why.nil?
        end
      end
    end
  end
end
