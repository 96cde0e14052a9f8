# frozen_string_literal: true

module Headway
  class Trace
    # The traces in a directory, which many processes and machines wrote or were copied to.
    module Directory
      # Where it is recorded, files end so unless told otherwise.
      ENDING = ".headway"
      TRACES = "**/*#{ENDING}"
      private_constant :ENDING, :TRACES

      # @param file [String]
      # @return [Boolean] whether it is taken for a trace, or for more of them, in the directory that it lies in
      def self.of?(file) = file.end_with?(ENDING) || File.directory?(file)

      # @param path [String]
      # @yieldparam file [String] one of which nothing can be read
      # @yieldparam why [String]
      # @return [Array<String>] the others, in the order of their names; those in directories inside it, too
      def self.files(path)
        # Where no locale is set, the path is bytes, and the names below it are not.
        Dir.glob(TRACES, base: path).sort.map { |name| File.join(path, name.force_encoding(path.encoding)) }.select do |file|
          why = Trace.fault(file)
          yield file, why if why
          why.nil?
        end
      end

      # @param processes [Array<Hash>] as in {Trace#to_h}
      # @return [Array<Array<Hash>>] those that overlap, or follow one another without a gap, together; in their order
      def self.runs(processes)
        last_s = 0.0
        processes.sort_by { |process| process[:start_s] }.slice_when do |before, after|
          last_s = [last_s, before[:end_s]].max
          after[:start_s] > last_s
        end.to_a
      end
    end
  end
end
