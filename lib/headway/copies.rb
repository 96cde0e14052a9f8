# frozen_string_literal: true

module Headway
  # Two copies of the gem may meet in a process: `headway run` brings its own, and the bundle has another. The first one stays,
  # whole, as Ruby files of one over the native extension of the other are neither: where a file of the other is required, this
  # one's is loaded.
  module Copies
    LIB = File.dirname(__dir__).freeze
    private_constant :LIB

    class << self
      # @param file [String] that is being loaded
      # @return [Boolean] whether it is another copy's: this one's has been loaded instead then, and it must go no further
      def instead(file)
        lib, name = File.realpath(file).match(%r{\A(.+)/((?:headway|puma)/.+)\z}) { |match| match.captures }
        return false if lib.nil? || lib == LIB

        stand_in_for(lib)
        require File.join(LIB, name)
        true
      end

      private

      # Not in front of everything: the application's own files may have such names, too.
      def stand_in_for(lib)
        return unless $LOAD_PATH.any? { |path| real(path) == lib }

        $LOAD_PATH.map! { |path| real(path) == lib ? LIB : path }
        say(lib)
      end

      def real(path)
        File.realpath(path)
      rescue SystemCallError
        path
      end

      # Once for this process and those it starts, as Autostart does.
      def say(lib)
        return if Settings.disabled? || Platform.reason # then none is at work

        version = File.read(File.join(lib, "headway/version.rb"))[/"(.+)"/, 1]
        text = "#{VERSION} in #{LIB} is at work, and #{version} in #{lib} is left out: for that one, bundle exec headway run ..."
        return if version == VERSION || ENV["HEADWAY_SAID"] == text

        ENV["HEADWAY_SAID"] = text
        $stderr.puts("headway: #{text}")
      rescue IOError, SystemCallError
        nil
      end
    end
  end
end
