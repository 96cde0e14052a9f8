# frozen_string_literal: true

require "fileutils"
require "rbconfig"

module Harness
  # Builds test/vm_fixture into tmp/ when it is missing or older than its source, and loads it.
  module FixtureBuild
    SOURCE = File.expand_path("../vm_fixture", __dir__)
    TARGET = File.expand_path("../../tmp/vm_fixture/#{RUBY_ENGINE}-#{RUBY_VERSION}", __dir__)
    LIBRARY = File.join(TARGET, "vm_fixture.#{RbConfig::CONFIG["DLEXT"]}")
    BUILT = File.join(TARGET, "built") # the library is there before the linker has written all of it

    module_function

    def load
      build_once unless fresh?
      require LIBRARY
    end

    def fresh?
      File.exist?(BUILT) && Dir[File.join(SOURCE, "*")].all? { |file| File.mtime(file) <= File.mtime(BUILT) }
    end

    # Several test processes may come here at the same time.
    def build_once
      FileUtils.mkdir_p(TARGET)
      File.open(File.join(TARGET, "lock"), File::CREAT | File::RDWR) do |lock|
        lock.flock(File::LOCK_EX)
        build unless fresh?
      end
    end

    def build
      log = File.join(TARGET, "build.log")
      options = { chdir: TARGET, out: log, err: %i[child out] }
      done = system(RbConfig.ruby, File.join(SOURCE, "extconf.rb"), **options) &&
             system("make", **options, out: [log, "a"])
      raise "test/vm_fixture does not build:\n#{File.read(log)}" unless done

      FileUtils.touch(BUILT)
    end
  end
end

Harness::FixtureBuild.load
