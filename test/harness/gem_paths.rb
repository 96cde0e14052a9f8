# frozen_string_literal: true

# Loaded first of all by a Ruby that a test starts: it finds the gems where {Harness::RubyProcess} says they are. To let Bundler work
# that out again takes three times as long as all else a Ruby needs to start. Without RubyGems what comes with Ruby goes first.
paths = ENV["GEM_PATHS_OF_TESTS"].to_s.split(File::PATH_SEPARATOR)
defined?(Gem) ? Gem.add_to_load_path(*paths) : $LOAD_PATH.concat(paths)
