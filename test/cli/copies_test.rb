# frozen_string_literal: true

require "cli/command_line"
require "headway"
require "servers/server_process"

# `headway run` from one copy of the gem, and another copy in the application's bundle.
class CopiesTest < Minitest::Test
  include CommandLine
  include Harness::Serving

  LOADED = '$LOADED_FEATURES.grep(/headway/).map { |file| file.sub(%r{/headway(/.*)?\.\w+\z}, "") }.uniq'
  # The programs of gems beside those that Bundler finds by itself.
  PROGRAMS = Gem.path.map { |path| File.join(path, "bin") }
  ENVIRONMENT = CommandLine::CLEAN.merge("PATH" => [*PROGRAMS, ENV["PATH"]].join(File::PATH_SEPARATOR)).freeze

  def setup
    super
    skip Headway.unsupported_reason unless Headway.supported?
  end

  # In one process, as Bundler loads a program made for the same Ruby; and in the next, which Bundler's setup comes first in.
  def test_the_one_that_was_loaded_first_stays
    other = bundle_another("9.9.9")
    write("config.ru", <<~RUBY)
      require "headway"
      require "headway/metrics"
      map("/metrics") { run Headway::Metrics::Endpoint.new }
      run Headway::Rack.new(->(_) { Headway::Web; [200, {}, [Headway::VERSION, *#{LOADED}].map { |line| "\#{line}\n" }] })
    RUBY
    write("puma.rb", "plugin :headway\nthreads 1, 1\nbind 'tcp://127.0.0.1:0'\n")
    [[], [RbConfig.ruby]].each do |through|
      log, port, server = puma(*through)
      lines = get(port).body.lines(chomp: true)
      assert_equal [Headway::VERSION, File.join(ROOT, "lib")], [lines.first, *lines.grep(%r{/lib\z})], lines.join("\n")
      assert_match(/\Agvl|headway_/, get(port, "/metrics").body)
      refute_match(/warning|already initialized/, log.call)
      assert_equal ["headway: #{Headway::VERSION} in #{ROOT}/lib is at work, and 9.9.9 in #{other}/lib is left out: for " \
                    "that one, bundle exec headway run ...\n"], log.call.lines.grep(/\Aheadway:/)
      server.stop(:KILL)
    end
  end

  def test_of_two_alike_nothing_is_said
    bundle_another(Headway::VERSION)
    write("config.ru", "")
    result = headway("run", *bundler, "exec", RbConfig.ruby, "-e", "require 'headway'; puts #{LOADED}",
                     chdir: @directory, env: ENVIRONMENT)
    assert_quiet_success result
    assert_equal [File.join(ROOT, "lib")], result.out.lines(chomp: true).grep(%r{/lib\z})
  end

  # As in a shell that runs with Headway, or where the program is a script that runs another one with it.
  def test_a_copys_command_under_another_ones
    other = bundle_another("9.9.9")
    code = ["run", RbConfig.ruby, "-e", "puts Headway.started?, #{LOADED}"]
    [[RbConfig.ruby, File.join(other, "exe/headway")], [*bundler, "exec", "headway"]].each do |command|
      result = headway("run", "--summary", *command, *code, chdir: @directory, env: ENVIRONMENT)
      assert_equal ["true", File.join(ROOT, "lib")], result.out.lines(chomp: true).grep(%r{true|/lib\z}), result.to_s
      assert_equal 1, result.err.scan(/^Headway /).size, result.to_s
      refute_match(/warning/, result.err)
    end
    result = headway("run", RbConfig.ruby, File.join(other, "exe/headway"), "--version", env: ENVIRONMENT.merge("HEADWAY" => "0"))
    assert_equal ["headway 9.9.9\n", ""], [result.out, result.err]
  end

  # As on a Ruby that is too old, where what was loaded says so, and goes no further.
  def test_a_copy_where_the_other_one_does_nothing
    other = bundle_another("9.9.9")
    off = ENVIRONMENT.merge("RUBYOPT" => "-r#{ROOT}/lib/headway/autostart.rb", "HEADWAY" => "off")
    code = "require 'headway'; puts Headway.started?, Headway::VERSION"
    [[*bundler, "exec", RbConfig.ruby, "-w", "-e", code], ["-w", File.join(other, "exe/headway"), "--version"]].each do |command|
      result = Harness::RubyProcess.run(*command, pass: { chdir: @directory }, env: off)
      assert_predicate result, :success?, result.to_s
      assert_match(/\A(?:false\n|headway )#{Headway::VERSION}\n\z/, result.out)
      assert_equal [%(headway: is off: HEADWAY is "off", which is taken for 0: give 0 or 1\n)], result.err.lines.grep(/headway/)
    end
  end

  def test_the_bundles_own_command_takes_the_bundles_copy
    other = bundle_another("9.9.9")
    result = Harness::RubyProcess.run(*bundler, "exec", "headway", "run", RbConfig.ruby, "-e",
                                      "require 'headway'; puts Headway::VERSION",
                                      pass: { chdir: @directory }, env: ENVIRONMENT)
    assert_predicate result, :success?, result.to_s
    assert_equal "9.9.9\n", result.out, other
  end

  # As from a checkout, or from the gem unpacked.
  def test_a_path_in_the_gemfile_to_a_copy_that_was_not_built
    copy = bundle_another("9.9.9")
    FileUtils.rm_rf(Dir[File.join(copy, "lib/headway/{,*/}headway.#{RbConfig::CONFIG["DLEXT"]}")])
    code = ["exec", RbConfig.ruby, "-e", "require 'headway'; Headway.start"]
    said = -> { Harness::RubyProcess.run(*bundler, *code, pass: { chdir: @directory }, env: ENVIRONMENT).err }
    assert_match(/not built for this Ruby.*: gem pristine headway builds it.*path:, which builds nothing/, said.call)
    FileUtils.mkdir(File.join(copy, "bin"))
    FileUtils.touch(File.join(copy, "bin/setup"))
    assert_match(/not built for this Ruby.*: run bin\/setup in #{copy}$/, said.call)
  end

  private

  def bundler = [Gem.bin_path("bundler", "bundle")]

  def bundle_another(version)
    copy = File.join(@directory, "headway")
    FileUtils.mkdir_p(copy)
    FileUtils.cp_r(%w[lib exe headway.gemspec].map { |name| File.join(ROOT, name) }, copy)
    file = File.join(copy, "lib/headway/version.rb")
    File.write(file, File.read(file).sub(Headway::VERSION, version))
    write("Gemfile", "gem 'puma'\ngem 'rack'\ngem 'headway', path: 'headway'\n")
    copy
  end

  def puma(*through)
    program = through.empty? ? "puma" : gem_program("puma")
    server = serve(RbConfig.ruby, EXE, "run", *bundler, "exec", *through, program, "-C", "puma.rb", env: ENVIRONMENT, program: true)
    [server.method(:output), server.await_output(%r{Listening on http://127.0.0.1:\d+})[/\d+\z/].to_i, server]
  end
end
