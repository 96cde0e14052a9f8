# frozen_string_literal: true

module Headway
  module Estimate
    # The work as it is typed or in a file, made into something to call.
    class Source
      # What stands between a require and its error.
      REQUIRE = %r{rubygems/core_ext|bundled_gems\.rb|<internal:}
      private_constant :REQUIRE

      # @param settings [Hash] "code" or "file", and "requires"
      def initialize(settings)
        @settings = settings
      end

      # @return [#call]
      # @raise [Error] it is no Ruby, or a library is missing
      def block
        @settings["requires"].each { |library| load_library(library) }
        @settings["file"] ? from_file(@settings["file"]) : from_code(@settings["code"])
      end

      private

      def load_library(library)
        require(library)
      rescue LoadError => error
        raise Error, "-r #{library}: #{missing(library, error)}"
      end

      # It may be there and itself require what isn't.
      def missing(library, error)
        return "there is no such library" if error.path == library

        what = error.path ? "it requires #{error.path}, and there is no such library" : Reason.line(error)
        place = error.backtrace_locations&.find { |one| one.absolute_path && !one.path.match?(REQUIRE) }
        "#{what}#{" (#{place.path}:#{place.lineno})" if place}"
      end

      def from_code(code)
        compile(code, "-e")
        eval("-> do\n#{code}\nend", TOPLEVEL_BINDING.dup, "-e", 0)
      end

      # A file that ends in something to call has prepared it; any other is the work itself.
      def from_file(file)
        path = Recorder::FileName.absolute(file)
        $PROGRAM_NAME = file
        compiled = compile(File.read(path, encoding: "UTF-8:-"), path)
        last = compiled.eval
        last.respond_to?(:call) ? last : -> { compiled.eval }
      end

      def compile(text, path)
        raise Error, "#{path} is no valid #{text.encoding} text" unless text.valid_encoding?

        RubyVM::InstructionSequence.compile(text, path, path)
      rescue SyntaxError => error
        raise Error, "the work is no Ruby: #{problem(error.message)}"
      end

      # The parser's messages are many lines; the first says where, one of the others what.
      def problem(message)
        lines = message.lines.map(&:strip).reject(&:empty?)
        what = lines.find { _1.match?(/\A\^|\| *\^/) }&.sub(/\A[^^]*[\^~\s]+/, "")
        [lines.first, what].compact.reject(&:empty?).join(": ")
      end
    end
  end
end
