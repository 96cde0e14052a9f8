# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "rbconfig"
require "tmpdir"
require "headway/platform"
require "headway/version"

# For the tests that run the real executable in a process of its own.
module CommandLine
  ROOT = File.expand_path("../..", __dir__)
  EXE = File.join(ROOT, "exe/headway")

  # What this process has from the one that runs the tests, and a user's shell has not.
  CLEAN = (ENV.keys.grep(/\A(BUNDLE|BUNDLER|HEADWAY|RUBY)/) - ["BUNDLE_SILENCE_ROOT_WARNING"])
          .to_h { |name| [name, nil] }
          .merge("RUBYOPT" => nil, "RUBYLIB" => nil, "GEM_PATH" => Gem.path.join(File::PATH_SEPARATOR)).freeze

  # @return [Harness::RubyProcess::Result]
  def headway(*arguments, env: {}, input: File::NULL, chdir: ROOT, exe: EXE, pass: {})
    Harness::RubyProcess.run(exe, *arguments, env: CLEAN.merge(env), input: input, pass: { chdir: chdir, **pass })
  end

  # Runs Ruby code under `headway run`.
  def headway_ruby(code, *options, **settings)
    headway("run", *options, "--", RbConfig.ruby, "-e", code, **settings)
  end

  # One line on stderr that has the words, nothing on stdout, status 2.
  def assert_bad_usage(words, result)
    assert_equal 2, result.status.exitstatus, result.to_s
    assert_empty result.out
    assert_equal 1, result.err.lines.size, result.err
    assert_match(/\Aheadway: /, result.err)
    assert_match words, result.err
  end

  def assert_quiet_success(result)
    assert_predicate result, :success?, result.to_s
    assert_empty result.err
  end

  # Code after which the process gets an interrupt as it loads that file of ours.
  def interrupt_while_loading(file)
    <<~RUBY
      loading = TracePoint.new(:class) do |point|
        next unless point.path.end_with?(#{file.dump})
        loading.disable
        Process.kill(:INT, $$)
        sleep 5
      end
      loading.enable
    RUBY
  end

  # Of that very name: a temporary one has no spaces.
  def in_directory(name = "headway")
    Dir.mktmpdir do |directory|
      path = File.join(File.realpath(directory), name)
      Dir.mkdir(path)
      yield path
    end
  end

  def write(directory, name, text, mode = 0o644)
    path = File.join(directory, name)
    File.write(path, text)
    File.chmod(mode, path)
    path
  end
end
