# frozen_string_literal: true

require "rbconfig"

module Headway
  module CLI
    # Finds what COMMAND of `headway run` means.
    module Command
      SHEBANG_RUBY = /\A#!.*\bj?ruby/.freeze
      # What Rubies are called: ruby3.4, jruby, truffleruby.
      RUBY = /ruby[\d.]*\z/.freeze
      private_constant :SHEBANG_RUBY, :RUBY

      class << self
        # A Ruby script is run with the Ruby that runs Headway, whatever its first line says: that one is known to
        # have the extension. Anything else is started as it is.
        #
        # @param words [Array<String>] COMMAND and its arguments
        # @return [Array(Array(String, String), Array<String>)] the program's path and what it is called, as a shell would call it; its
        #   arguments
        # @raise [UsageError]
        def resolve(words, path: ENV["PATH"])
          name, *arguments = words
          raise UsageError, "no command to run: try headway run bundle exec puma" if name.nil? || name.empty?

          file = find(name, path)
          return [[RbConfig.ruby, RbConfig.ruby], [file, *arguments]] if ruby_script?(file)

          check_executable(name, file)
          [[file, name], arguments]
        end

        # @param command [Array(Array(String, String), Array<String>)] as {resolve} returns it
        # @return [Boolean] whether it starts a Ruby without fail
        def ruby?(command) = RUBY.match?(File.basename(command.first.first))

        private

        def find(name, path)
          here = File.exist?(name)
          return name if here && (name.include?("/") || name.end_with?(".rb"))
          raise UsageError, "no such file: #{name}" if name.include?("/")

          on_path(name, path) || (name if here && ruby_script?(name)) || raise(UsageError, not_found(name))
        end

        def on_path(name, path)
          path.to_s.split(File::PATH_SEPARATOR)
              .map { |directory| File.join(directory.empty? ? "." : directory, name) }
              .find { |file| File.file?(file) && File.executable?(file) }
        end

        def ruby_script?(file)
          return false unless File.file?(file) && File.readable?(file)

          file.end_with?(".rb") || SHEBANG_RUBY.match?(File.binread(file, 200).to_s.lines.first.to_s)
        end

        def not_found(name)
          return "no such file: #{name}" if name.end_with?(".rb")

          "no such command: #{name.scrub} (it is neither on PATH nor a Ruby script here)"
        end

        def check_executable(name, file)
          raise UsageError, "#{name} is a directory: give a Ruby script or a command" if File.directory?(file)
          raise UsageError, "#{name} cannot be read" if file.end_with?(".rb")
          return if File.executable?(file)

          raise UsageError, "#{name} is not executable: chmod +x it, or name the program that runs it"
        end
      end
    end
  end
end
