# frozen_string_literal: true

require "fileutils"
require_relative "apt"

module CRubySuite
  # The tests of the running Ruby, or of the version of its series nearest to it that can still be had, below tmp/.
  class Source
    TMP = File.expand_path("../../tmp/cruby_suite", __dir__)
    # A tarball at hand, instead of a download.
    TARBALL = "CRUBY_TARBALL"

    # @return [String] a directory with test/ and tool/
    def directory
      done = extracted.first || extract(ENV[TARBALL] || download)
      say_version(done)
      done
    end

    private

    def series = RUBY_VERSION[/\d+\.\d+/]

    def package = "ruby#{series}"

    def extracted = Dir[File.join(TMP, "ruby-#{series}.*")].select { |directory| File.exist?(File.join(directory, "test/runner.rb")) }

    def download
      apt = Apt.new(File.join(TMP, "apt"))
      versions = apt.versions(package).sort_by { |version| distance(version) }
      raise Apt::Error, "Debian has no source package #{package}" if versions.empty?

      versions.each do |version|
        tarball = apt.download(package, version) and return tarball
        warn "cruby_suite: the mirror lists #{package} #{version} but no longer has it"
      end
      raise Apt::Error, "the mirror has the source of no version of #{package} (#{versions.join(", ")}); #{TARBALL}=FILE names one at hand"
    end

    def distance(version) = (patch_level(version) - patch_level(RUBY_VERSION)).abs

    def patch_level(version) = version[/\A\d+\.\d+\.(\d+)/, 1].to_i

    def extract(tarball)
      version = File.basename(tarball)[/\d+\.\d+\.\d+/]
      target = File.join(TMP, "ruby-#{version}")
      FileUtils.rm_rf(target)
      FileUtils.mkdir_p(target)
      system("tar", "-xf", tarball, "-C", target, "--strip-components=1", "--wildcards", "*/test", "*/tool", exception: true)
      target
    end

    def say_version(directory)
      version = File.basename(directory).delete_prefix("ruby-")
      warn "cruby_suite: tests of #{version}, the nearest that can be had, for Ruby #{RUBY_VERSION}" unless version == RUBY_VERSION
    end
  end
end
