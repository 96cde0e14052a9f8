# frozen_string_literal: true

Gem::Specification.new do |spec|
  spec.name = "headway"
  # Read, not required: Bundler evaluates this in a process where another copy may be loaded.
  spec.version = File.read(File.join(__dir__, "lib/headway/version.rb"))[/"(.+)"/, 1]
  spec.summary = "Keeps every Ruby thread moving: a scheduler for the GVL"
  spec.description = "Gives threads that wake from I/O the GVL within microseconds while others compute, " \
                     "with a time slice that can be set at run time. For stock CRuby 3.3 and newer."
  spec.authors = ["The Headway developers"]
  spec.license = "MIT"
  # Loose on purpose: where Headway cannot work it installs all the same, and says at run time why it does nothing.
  spec.required_ruby_version = ">= 2.6"
  spec.metadata = { "rubygems_mfa_required" => "true" }

  spec.files = Dir.chdir(__dir__) do
    Dir["lib/**/*.rb", "lib/headway/report/page.html", "lib/headway/web/**/*.{html,js,css,svg}",
        "report/src/{dom,format,histogram,timeline/palette}.js", "report/src/styles/{base,tables,timeline}.css", "exe/*", "ext/headway/**/*.{c,h,rb}", "ext/headway/**/depend",
        "ext/headway/core/Makefile", "docs/**/*.{md,svg}", "fleet/*", "README.md", "CHANGELOG.md", "LICENSE.txt"].reject { |file| file.include?("/test/") }
  end
  spec.bindir = "exe"
  spec.executables = ["headway"]
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/headway/extconf.rb"]
end
