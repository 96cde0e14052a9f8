# frozen_string_literal: true

# Whether Headway can work on this Ruby. Old Rubies and JRuby read this file too, to be told why nothing happens:
# keep to syntax that Ruby 2.0 parses, and require nothing.
module Headway
  # What Headway needs of the Ruby it runs in.
  module Platform
    # The oldest CRuby whose thread hooks name the thread an event is about.
    MINIMUM_RUBY = [3, 3].freeze

    # The first Ruby that reads RUBY_THREAD_TIMESLICE.
    TIMESLICE_RUBY = [3, 4].freeze

    ROOT = File.expand_path("../..", __dir__).freeze
    private_constant :ROOT

    class << self
      # Why this Ruby cannot run Headway, judged by what it is.
      #
      # @return [String, nil] nil when it can
      def reason(engine: RUBY_ENGINE, version: RUBY_VERSION, platform: RUBY_PLATFORM)
        if engine != "ruby"
          "#{engine} has no GVL to schedule (it needs CRuby 3.3 or newer)"
        elsif (number(version) <=> MINIMUM_RUBY) < 0
          "Ruby #{version} is too old (it needs CRuby 3.3 or newer)"
        elsif platform =~ /mswin|mingw|cygwin/
          "Windows is not supported (it needs a POSIX system)"
        elsif platform =~ /wasm|wasi/
          "#{platform} has no threads"
        end
      end

      # @return [Boolean] whether the VM's own time slice can be set (RUBY_THREAD_TIMESLICE)
      def timeslice?(version: RUBY_VERSION)
        (number(version) <=> TIMESLICE_RUBY) >= 0
      end

      # As the VM reads it: atoi(3), and more than 0.
      #
      # @return [Boolean] whether threads of the main Ractor share native threads
      def many_to_many?(env = ENV)
        env["RUBY_MN_THREADS"].to_s[/\A\s*\+?\d+/].to_i > 0
      end

      # Keeps the reason why the extension could not be loaded, for {Headway.unsupported_reason}.
      #
      # @param error [LoadError, String]
      # @return [String] the reason kept
      def extension_missing(error)
        detail = error.respond_to?(:message) ? error.message.lines.first.to_s.chomp : error.to_s
        @missing = "its native extension was not built for this Ruby, #{RUBY_VERSION} (#{detail}): #{remedy}".freeze
      end

      # @return [String, nil] why Headway does nothing here: the Ruby's fault or the extension's
      def unsupported_reason
        reason || @missing
      end

      private

      # A Gemfile's path: takes a directory as it is and builds nothing.
      def remedy
        return "run bin/setup in #{ROOT}" if File.exist?(File.join(ROOT, "bin/setup"))

        "gem pristine headway builds it, in a bundle bundle pristine headway (not where the Gemfile has path:, which builds " \
          "nothing: give git: there)"
      end

      def number(version)
        version.split(".").first(2).map { |part| part.to_i }
      end
    end
  end

  # @return [Boolean] whether Headway can work on this Ruby
  def self.supported?
    Platform.unsupported_reason.nil?
  end

  # @return [String, nil] why it cannot, nil when it can
  def self.unsupported_reason
    Platform.unsupported_reason
  end
end
