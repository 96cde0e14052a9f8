# frozen_string_literal: true

require "fileutils"
require "open3"

module CRubySuite
  # Debian's source packages, through apt with a source list and a state of its own: nothing of the machine's is changed.
  class Apt
    Error = Class.new(StandardError)
    SUITES = "sid experimental"
    KEYRING = "/usr/share/keyrings/debian-archive-keyring.*"

    # @param directory [String] where apt may keep its lists and cache
    def initialize(directory)
      @directory = directory
    end

    # @return [Array<String>] the versions there are of a source package, in no order
    def versions(package)
      update
      apt("apt-cache", "showsrc", package).scan(/^Version: (\S+)/).flatten.uniq
    end

    # Downloads the upstream tarball of one version.
    # @return [String, nil] its path; nil when the mirror has lost it
    def download(package, version)
      uris = apt("apt-get", "source", "--download-only", "--print-uris", "#{package}=#{version}")
      uri, name, hash = uris[/^'(\S+)' (\S+\.orig\.tar\.\S+) \d+ (\S+)/] && [$1, $2, $3]
      return unless uri

      path = File.join(@directory, name)
      return path if File.exist?(path)

      FileUtils.mkdir_p(@directory)
      _, status = Open3.capture2e("/usr/lib/apt/apt-helper", *options, "download-file", uri, path, hash)
      path if status.success? && File.exist?(path)
    end

    private

    def update
      FileUtils.mkdir_p([File.join(@directory, "lists/partial"), File.join(@directory, "cache/archives/partial")])
      File.write(source_list, <<~SOURCES)
        Types: deb-src
        URIs: #{mirror}
        Suites: #{SUITES}
        Components: main
        #{"Signed-By: #{keyring}" if keyring}
      SOURCES
      apt("apt-get", "update")
    end

    # Where this machine gets Debian from.
    def mirror
      targets = apt_of_the_machine("apt-get", "indextargets", "--format", "$(REPO_URI)|$(ORIGIN)|$(RELEASE)", "Created-By: Packages")
      found = targets.lines(chomp: true).map { |line| line.split("|") }.find do |_, origin, release|
        origin == "Debian" && !release.end_with?("-security")
      end
      found&.first or raise Error, "apt on this machine knows no Debian mirror"
    end

    def keyring = Dir[KEYRING].min

    def source_list = File.join(@directory, "debian.sources")

    def options
      { "Dir::Etc::sourcelist" => source_list, "Dir::Etc::sourceparts" => "-",
        "Dir::State::lists" => File.join(@directory, "lists"), "Dir::Cache" => File.join(@directory, "cache"),
        "APT::Sandbox::User" => "root" }.flat_map { |name, value| ["-o", "#{name}=#{value}"] }
    end

    def apt(command, *arguments) = apt_of_the_machine(command, *options, *arguments)

    def apt_of_the_machine(*command)
      out, status = Open3.capture2e(*command)
      status.success? ? out : raise(Error, "#{command.first} failed: #{out.lines.grep(/^[EW]:/).last(2).join.strip}")
    rescue Errno::ENOENT
      raise Error, "#{command.first} is not here: this needs a Debian machine"
    end
  end
end
